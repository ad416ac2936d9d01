"""What the tests of the suite share: the desk at which backends are asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.workers import Desk

DESK = pytest.StashKey[Desk]()


def desk_of(config: pytest.Config) -> Desk:
    """Give the one desk of the session; collecting needs it too, for the versions that ledgers depend on."""
    return config.stash.setdefault(DESK, Desk())


@pytest.fixture(scope="session")
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """The desk of the session, whose processes end with it."""
    yield desk_of(request.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the processes, also where only collecting has started them."""
    if DESK in config.stash:
        config.stash[DESK].close()
