"""The Sphinx extensions of this documentation."""
