"""A fixture of tests that run the product's decisions in their own process."""

from collections.abc import Iterator

import pytest
from support.logs import watched_decisions


@pytest.fixture(autouse=True, scope="session")
def decisions_ask_no_clock() -> Iterator[None]:
    """Decisions are watched, whatever a test is about."""
    with watched_decisions():
        yield
