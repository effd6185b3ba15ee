"""One browser for all tests, and consoles over lakes of their own."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from support.browsers import chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found
