"""The option --backend. A plugin adds it, since pytest reads no conftest of a package that --pyargs names."""

from __future__ import annotations

import os
from typing import Any

import pytest


def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> None:
    """Add the option where this suite is asked for, and leave the command line of other suites alone."""
    if any("conformance.suite" in argument.replace(os.sep, ".") for argument in args):
        parser.getgroup("conformance").addoption(
            "--backend",
            action="append",
            metavar="NAME",
            help="Judge this backend, as python -m conformance run does; repeatable. Default: the three, as installed.",
        )


def backends(config: Any) -> list[str] | None:
    """Give the backends that were named, or None."""
    return config.getoption("--backend", default=None)
