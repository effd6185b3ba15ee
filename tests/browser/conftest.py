"""A browser for each file of tests: it ends with it, as its loop runs in the thread of the tests."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from support.browsers import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found
