"""A lake on disk, for the tests of consumers that need no other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidelog.log.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake with an empty topic `t` of two partitions."""
    with Lake(str(tmp_path)) as opened:
        opened.create_topic("t", partitions=2)
        yield opened
