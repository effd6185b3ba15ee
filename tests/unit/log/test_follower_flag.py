"""A lake that follows another one: its own file says so, and its doors refuse every change."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.model import RegisteredBroker
from tidelog.log.base.errors import LakeFollowsError, UnsupportedFormatError
from tidelog.log.config.lake_file import Follows
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage
from tidelog.transactions.transaction_log import TransactionLog

RECORDS = pa.table({"key": [b"a"], "value": [b"1"]})

CHANGES: dict[str, Callable[[Lake], object]] = {
    "append": lambda lake: lake.topic("orders").append(RECORDS),
    "create": lambda lake: lake.create_topic("payments"),
    "alter": lambda lake: lake.alter_topic("orders", partitions=9),
    "delete": lambda lake: lake.delete_topic("orders"),
    "delete records": lambda lake: lake.delete_records("orders", {0: 1}),
    "rows": lambda lake: TransactionLog(lake).init("t", 1000),
    "configuration": lambda lake: lake.alter_config({"num.partitions": "3"}),
}


def a_follower() -> MemoryStorage:
    storage = MemoryStorage("f")
    with Lake("memory://f", storage=storage) as lake:
        lake.create_topic("orders", 1)
        lake.topic("orders").append(RECORDS)
        lake.alter_config({"num.partitions": "2"})
        lake.follow(Follows("s3://bucket/main"))
    return storage


@pytest.mark.parametrize("change", CHANGES)
def test_a_follower_refuses_every_change_and_says_why(change: str) -> None:
    storage = a_follower()
    before = set(storage._paths)
    with Lake("memory://f", storage=storage) as lake, pytest.raises(LakeFollowsError, match="follows s3://bucket/main"):
        CHANGES[change](lake)
    assert set(storage._paths) == before  # nothing was staged, either


def test_a_follower_is_read_as_any_lake() -> None:
    with Lake("memory://f", storage=a_follower()) as lake:
        assert [v for t in lake.topic("orders").read(0, 0) for v in t.column("value").to_pylist()] == [b"1"]
        assert lake.config().num_partitions == 2


def test_the_brokers_of_a_follower_are_its_own() -> None:
    with Lake("memory://f", storage=a_follower()) as lake:
        ClusterLog(lake).register(RegisteredBroker(0, "5d5b"), any_id=True)
        assert len(ClusterLog(lake).look().brokers) == 1


def test_a_follower_keeps_its_flag_and_its_configuration_through_a_change_of_access_root() -> None:
    storage = a_follower()
    with Lake("memory://f", storage=storage) as lake:
        lake.alter_config({"access.root": "s3://bucket/access"})
    with Lake("memory://f", storage=storage) as lake:
        assert lake.follows() == Follows("s3://bucket/main")
        assert lake.config().overrides == {"num.partitions": "2", "access.root": "s3://bucket/access"}


def test_a_lake_that_follows_no_more_takes_changes_again() -> None:
    storage = a_follower()
    with Lake("memory://f", storage=storage, may_change_follower=True) as lake:
        lake.alter_topic("orders", partitions=2)
        lake.follow(None)
    with Lake("memory://f", storage=storage) as lake:
        assert lake.follows() is None
        lake.topic("orders").append(RECORDS)


@pytest.mark.parametrize("said", [b'"yes"', b"{}", b'{"lake": 7}', b'{"lake": "a", "promoting": 1}'])
def test_a_flag_that_says_no_lake_is_refused(said: bytes) -> None:
    storage = MemoryStorage("f")
    storage.put("__lake.json", b'{"format":2,"config":{},"follows":' + said + b"}")
    with pytest.raises(UnsupportedFormatError, match="which lake it follows"):
        Lake("memory://f", storage=storage)
