"""Opening a lake: created, refused, or not what it should be."""

import orjson
import pytest
from support.logs import memory_lake, open_lake, read, values

from tidelog.log.errors import (
    InvalidConfigError,
    LakeNotFoundError,
    NotATopicError,
    ObjectNotFoundError,
    UnsupportedFormatError,
)
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage

# --- opening -----------------------------------------------------------------------------------------------


def test_create_false_refuses_what_is_not_there() -> None:
    storage = MemoryStorage("nowhere")
    with pytest.raises(
        LakeNotFoundError, match=r"There is no lake at memory://nowhere.*Check the address, or create it"
    ):
        Lake("", create=False, storage=storage)
    assert list(storage.list_after("")) == []
    Lake("", storage=storage)
    assert Lake("", create=False, storage=storage).topics() == []


def test_two_who_create_a_lake_at_once_get_one() -> None:
    lake, storage, clock = memory_lake()
    lake.alter_config({"num.partitions": "4"})
    seen = []

    def absent_once(method: str, path: str, phase: str) -> None:
        if (method, path, phase) == ("get", "__lake.json", "before") and not seen:
            seen.append(path)
            raise ObjectNotFoundError("not yet")

    storage.hook = absent_once
    assert open_lake(storage, clock).config().num_partitions == 4


BAD_FILES: dict[str, tuple[bytes, type[Exception], str]] = {
    "a newer format": (b'{"format":2,"config":{}}', UnsupportedFormatError, "format version 2.*Upgrade tidelog"),
    "no JSON": (b'{"format":1', UnsupportedFormatError, "is not what tidelog writes there"),
    "empty": (b"", UnsupportedFormatError, "is not what tidelog writes there"),
    "a list": (b"[]", UnsupportedFormatError, "is not what tidelog writes there"),
    "no format": (b"{}", UnsupportedFormatError, "is not what tidelog writes there"),
    "a bad value": (
        orjson.dumps({"format": 1, "config": {"num.partitions": "0"}}),
        InvalidConfigError,
        r"__lake\.json: Invalid value 0 for configuration num\.partitions.*Correct it in that file",
    ),
}


@pytest.mark.parametrize(("data", "error", "says"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_lakes_file_that_can_not_be_read(data: bytes, error: type[Exception], says: str) -> None:
    _, storage, clock = memory_lake()
    storage.inner.put("__lake.json", data)
    with pytest.raises(error, match=says):
        open_lake(storage, clock)


def test_a_table_is_no_lake() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t")
    moved = MemoryStorage("moved")
    for found in storage.list_after("t/_delta_log"):
        moved.put(found.path.removeprefix("t/"), storage.get(found.path))
    with pytest.raises(NotATopicError, match=r"is a Delta table, not a lake.*Give the folder above it"):
        Lake("", storage=moved)


def test_a_lake_is_a_context_that_waits_for_its_background() -> None:
    _, storage, clock = memory_lake()
    with open_lake(storage, clock) as lake:
        for i in range(20):
            lake.topic("t").append(values(f"{i}"), acks=0)
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(20)]
