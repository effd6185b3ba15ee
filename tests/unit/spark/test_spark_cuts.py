"""Which records of a topic's table are those of a cut, as Spark is asked for them."""

from typing import Any

import pytest
from support.logs import memory_lake, values

from tidelog.log.lake import Lake
from tidelog.operations.cuts import create_cut
from tidelog.spark import native
from tidelog.spark.native import visible_in


def of(partition: int, start: int, end: int) -> str:
    at = "base_offset + position"
    return f"(partition = {partition} AND {at} >= {start} AND {at} < {end})"


@pytest.mark.parametrize(
    ("ranges", "starts", "meant"),
    [
        ([(2, 5)], {}, of(0, 2, 5)),
        ([(2, 5), (0, 1)], {}, f"{of(0, 2, 5)} OR {of(1, 0, 1)}"),
        ([(2, 2), (0, 1)], {}, of(1, 0, 1)),
        ([(2, 5)], {0: 1}, of(0, 2, 5)),
        ([(2, 5)], {0: 4}, of(0, 4, 5)),  # deleted since: the files may still have them
        ([(2, 5), (0, 1)], {0: 5}, of(1, 0, 1)),
        ([(2, 5)], {0: 9}, "false"),
        ([], {}, "false"),
    ],
)
def test_the_offsets_of_a_cut(ranges: list[tuple[int, int]], starts: dict[int, int], meant: str) -> None:
    assert visible_in(ranges, starts) == meant


class Loading:
    """Reads as Spark's reader of tables: what it loads is the options that it was given."""

    def __init__(self, *options: object) -> None:
        self._options = options

    def option(self, *option: object) -> "Loading":
        return Loading(*self._options, option)

    def load(self, _: str) -> Any:
        return self._options


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_newer_table_shows_nothing_that_was_deleted_since(is_kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, _, _ = memory_lake()
    lake.create_topic("t", 1)
    lake.topic("t").append(values("a", "b", "c"))
    version = create_cut(lake, "friday").tables["t"].version
    lake.delete_records("t", {0: 2})
    monkeypatch.setattr(Lake, "oldest_version", lambda *_: version + (0 if is_kept else 1))
    reader: Any = Loading()
    options, _, _, condition = native._in_cut(reader, "t", lake, "t", lake.topic("t").state(), "friday")
    expected = ((("versionAsOf", version),), of(0, 0, 3)) if is_kept else ((), of(0, 2, 3))
    assert (options, condition) == expected
