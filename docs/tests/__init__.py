"""The machinery of the documentation, tested on small sites."""
