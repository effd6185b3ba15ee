"""A lake with a topic for tests of groups."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.logs import values

from tidelog.log.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path)) as lake:
        lake.create_topic("t", partitions=4)
        lake.topic("t").append(values(*"abcdefgh", partition=[0, 1, 2, 3] * 2))
        yield lake
