"""`tidelog transaction …` and `tidelog producer list`: what is shown, what is aborted, what is refused."""

import numpy as np
import pytest
from support.cli_calls import answer, done, lake_address, open_lake, refused
from support.logs import values
from support.producers import producer

from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import StorageFullError
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit


@pytest.fixture
def address():
    """A lake with ids in each state: `open` holds offsets, `stuck` is not rolled forward."""
    address = lake_address()
    with open_lake(address) as lake:
        lake.create_topic("t", 2)
        lake.topic("t").append(values("0", partition=[0]))
        for name in ("new", "done", "aborted", "open", "stuck"):
            p = manager(lake, name)
            p.init()
            if name == "new":
                continue
            p.begin()
            if name in ("aborted", "open"):
                p.add_offsets(GroupIdentity(name), {("t", 0): OffsetToCommit(1)})
            if name == "aborted":
                p.abort()
            if name in ("done", "stuck"):
                p.stage("t", values("1"), np.ones(1, np.int32))
            if name == "done":
                p.commit()
            if name == "stuck":
                stick(lake, p)
    return address


def manager(lake, name):
    return TransactionManager(lake, name, LoggedOffsets(GroupLog(lake)), timeout_ms=30_000)


def stick(lake, p):
    """Commit, and fail to roll forward."""

    def full(name, decide):
        raise StorageFullError("no space")

    commit, lake.commit = lake.commit, full
    with pytest.raises(StorageFullError):
        p.commit()
    lake.commit = commit


STATES = {
    "aborted": "CompleteAbort",
    "done": "CompleteCommit",
    "new": "Empty",
    "open": "Ongoing",
    "stuck": "PrepareCommit",
}


def test_ids_are_listed_with_their_states(address):
    assert done("transaction", "list", "--lake", address).stdout.splitlines() == sorted(STATES)
    listed = answer("transaction", "list", "--lake", address)
    assert {one["transactional_id"]: one["state"] for one in listed} == STATES


def test_an_id_is_described(address):
    header, row = done("transaction", "describe", "stuck", "--lake", address).stdout.splitlines()
    assert header.split() == [
        "COORDINATOR", "TRANSACTIONAL-ID", "PRODUCER-ID", "PRODUCER-EPOCH", "TRANSACTION-STATE", "TIMEOUT-MS",
        "START-TIME-MS", "DURATION-MS", "TOPIC-PARTITIONS",
    ]  # fmt: skip
    cells = row.split()
    assert (cells[0], cells[1], cells[3:6], cells[8]) == (address, "stuck", ["0", "PrepareCommit", "30000"], "t-1")
    found = answer("transaction", "describe", "open", "--lake", address)
    assert (found["state"], found["start_time_ms"] > 0, found["topic_partitions"]) == ("Ongoing", True, [])
    assert "no transactional id 'gone'" in refused(1, "transaction", "describe", "gone", "--lake", address)


def test_what_is_open_is_aborted_and_what_is_committed_is_not(address):
    told = done("transaction", "abort", "open", "--lake", address).stdout
    assert "Aborted transaction 1 of 'open'" in told
    found = answer("transaction", "describe", "open", "--lake", address)
    assert found["state"] == "CompleteAbort"
    with open_lake(address) as lake:
        assert GroupLog(lake).stable_offsets("open") == {}
    assert "can't be aborted" in refused(1, "transaction", "abort", "stuck", "--lake", address)
    assert "no transactional id" in refused(1, "transaction", "abort", "gone", "--lake", address)
    assert "it has" in refused(1, "transaction", "abort", "new", "--producer-id", "1", "--lake", address)
    assert answer("transaction", "abort", "new", "--lake", address)["number"] == 1


def test_producers_are_listed(address):
    with open_lake(address) as lake:
        lake.create_topic("u", 1)
        with producer(lake) as p:
            p.produce("u", b"1")
            p.produce("u", b"2")
            p.flush()
            p.produce("t", b"3", partition=1)
    listed = answer("producer", "list", "--lake", address)
    assert [(one["topic"], one["partition"], one["producer_epoch"], one["last_sequence"]) for one in listed] == [
        ("t", 1, 0, 0),
        ("u", 0, 0, 1),
    ]
    header, *rows = done("producer", "list", "--topic", "u", "--lake", address).stdout.splitlines()
    assert header.split()[:3] == ["TOPIC", "PARTITION", "PRODUCER-ID"]
    assert [row.split()[0] for row in rows] == ["u"]
    assert "does not exist" in refused(1, "producer", "list", "--topic", "gone", "--lake", address)
