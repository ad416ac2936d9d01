"""The cases as tests: pytest --pyargs conformance.suite --backend NAME."""
