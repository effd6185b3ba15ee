"""Opening a lake: created, refused, or not what it should be."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from support.logs import memory_lake, open_lake, read, values
from support.small_s3 import small_s3

from tidelog.check.lake import repair
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import (
    InvalidConfigError,
    LakeFileLostError,
    LakeNotFoundError,
    NotATopicError,
    ObjectNotFoundError,
    UnsupportedFormatError,
)
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage
from tidelog.transactions.transaction_log import TransactionLog

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


LOOKS: dict[str, Callable[[Lake], Any]] = {
    "topics": lambda lake: lake.topics(),
    "describe": lambda lake: lake.describe_topic("t"),
    "peek": lambda lake: lake.peek("t"),
    "read": lambda lake: list(lake.topic("t").read(0)),
    "offsets": lambda lake: lake.offsets("t"),
    "alter a topic": lambda lake: lake.alter_topic("t", partitions=2),
    "delete a topic": lambda lake: lake.delete_topic("t"),
    "groups": lambda lake: GroupLog(lake).views(),
    "transactions": lambda lake: TransactionLog(lake).all(),
}
WRITES: dict[str, Callable[[Lake], Any]] = {
    "create a topic": lambda lake: lake.create_topic("t"),
    "append": lambda lake: lake.topic("t").append(values("a")),
    "configure": lambda lake: lake.alter_config({"num.partitions": "2"}),
    "begin a producer": lambda lake: TransactionLog(lake).init("copier", 60_000),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_what_looks_into_a_lake_makes_none(look: Callable[[Lake], Any]) -> None:
    storage = MemoryStorage("none-yet")
    lake = Lake("", None, storage=storage)
    with pytest.raises(LakeNotFoundError, match=r"There is no lake at memory://none-yet .*create=True"):
        look(lake)
    assert list(storage.list_after("")) == []
    assert list(storage.list_folders("")) == []
    with Lake("", storage=storage) as other:
        other.create_topic("t")
    look(lake)  # it is seen when another program makes it


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_writes_into_a_lake_makes_it(write: Callable[[Lake], Any]) -> None:
    storage = MemoryStorage("none-yet")
    lake = Lake("", None, storage=storage)
    write(lake)
    Lake("", create=False, storage=storage).topics()


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
    "a newer format": (
        b'{"format":3,"config":{}}',
        UnsupportedFormatError,
        "lake at .* has on-disk format 3; this tidelog reads and writes format 2 and no other. Upgrade tidelog",
    ),
    "an older format": (
        b'{"format":1,"config":{}}',
        UnsupportedFormatError,
        "has on-disk format 1; .* Use the tidelog that wrote it, or produce its records to a new lake",
    ),
    "no JSON": (b'{"format":2', UnsupportedFormatError, "is not what tidelog writes there"),
    "empty": (b"", UnsupportedFormatError, "is not what tidelog writes there"),
    "a list": (b"[]", UnsupportedFormatError, "is not what tidelog writes there"),
    "no format": (b"{}", UnsupportedFormatError, "is not what tidelog writes there"),
    "a bad value": (
        orjson.dumps({"format": 2, "config": {"num.partitions": "0"}}),
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


# --- a lake whose own file is lost ---------------------------------------------------------------------------


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("internal", [True, False])
def test_a_lake_that_lost_its_file_is_not_made_anew_by_opening_it(create: bool, internal: bool) -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("__x" if internal else "orders")
    lake.create_topic("ticks")
    storage.delete("__lake.json")
    before = [found.path for found in storage.list_after("")]
    first = "__x" if internal else "orders"
    with pytest.raises(LakeFileLostError, match=rf"tables \('{first}' and 1 more\) and no __lake.json.*check --repair"):
        Lake("", create=create, storage=storage)
    assert [found.path for found in storage.list_after("")] == before


def test_a_folder_of_other_things_becomes_a_lake() -> None:
    storage = MemoryStorage("others")
    storage.put("photos/2026/a.jpg", b"")
    storage.put("a.txt", b"")
    assert Lake("", storage=storage).topics() == []


def test_a_lost_file_is_written_anew_when_that_is_asked_for() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("orders")
    lake.topic("orders").append(values("a"))
    lake.alter_config({"num.partitions": "7"})
    storage.delete("__lake.json")
    (step,) = repair(storage, clock=clock).steps
    assert (step.topic, step.where) == ("", "__lake.json")
    with pytest.raises(LakeFileLostError):
        open_lake(storage, clock)
    done = repair(storage, execute=True, clock=clock)
    assert (done.steps, done.report.green) == ((step,), True)
    mended = open_lake(storage, clock)
    assert (mended.config().num_partitions, read(mended, "orders")) == (1, ["a"])
    assert repair(storage, execute=True, clock=clock).steps == ()


def test_a_file_that_somebody_restores_meanwhile_stays() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("orders")
    lake.alter_config({"num.partitions": "7"})
    restored = storage.get("__lake.json")
    storage.delete("__lake.json")

    def restore(method: str, path: str, phase: str) -> None:
        if (method, path, phase) == ("put_if_absent", "__lake.json", "before"):
            storage.inner.put("__lake.json", restored)

    storage.hook = restore
    assert len(repair(storage, execute=True, clock=clock).skipped) == 1
    assert open_lake(storage, clock).config().num_partitions == 7


def test_a_lake_that_another_process_makes_just_now_is_not_taken_for_one_that_lost_its_file() -> None:
    lake, storage, clock = memory_lake()
    made = storage.get("__lake.json")
    storage.delete("__lake.json")

    def another(method: str, path: str, phase: str) -> None:
        if (method, path, phase) == ("list_folders", "", "before"):
            storage.hook = lambda *call: None
            storage.inner.put("__lake.json", made)
            lake.create_topic("theirs")

    storage.hook = another
    assert open_lake(storage, clock).topics() == ["theirs"]


def test_a_distant_store_is_looked_through_by_helpers() -> None:
    with small_s3() as s3:
        with Lake("s3://bucket/lake", options=s3.options) as lake:
            for name in ("a", "b"):
                lake.create_topic(name)
        del s3.objects["/bucket/lake/__lake.json"]
        with pytest.raises(LakeFileLostError, match="'a' and 1 more"):
            Lake("s3://bucket/lake", options=s3.options)


def test_a_lake_is_a_context_that_waits_for_its_background() -> None:
    _, storage, clock = memory_lake()
    with open_lake(storage, clock) as lake:
        for i in range(20):
            lake.topic("t").append(values(f"{i}"), acks=0)
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(20)]
