"""The pure parts of the benchmarks are tested, too; and decisions are watched, whatever a test is about."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.logs import watched_decisions

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS), str(BENCHMARKS / "peers")]


@pytest.fixture(autouse=True, scope="session")
def _decisions_ask_no_clock() -> Iterator[None]:
    with watched_decisions():
        yield
