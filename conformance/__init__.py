"""The judge: fixed cases, an oracle that imports no implementation, and the means to run any backend over them."""
