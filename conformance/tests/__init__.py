"""The judge judged: tests of the conformance package and of what surrounds it."""
