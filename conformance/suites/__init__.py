"""Public suites, run as they are: their inputs, expected values and tolerances, with our operations."""
