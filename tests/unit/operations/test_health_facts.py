"""The doctor at lakes with planted troubles: what is gathered is what was planted."""

import socket

import pytest
from support.logs import CountingIds, FakeClock

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.model import Listener, RegisteredBroker
from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.clock import SystemClock, SystemIds
from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage, open_storage
from tidelog.operations.cuts import create_cut
from tidelog.operations.health import gather
from tidelog.operations.health_rules import examined
from tidelog.retention.maintenance import maintain
from tidelog.transactions.part_rules import ProducerIdentity
from tidelog.transactions.transaction_log import TransactionLog


class _Place:
    """A lake in memory by a made-up clock, and what the doctor says of it."""

    def __init__(self):
        self.clock = FakeClock()
        self.storage = MemoryStorage("memory://doctor", self.clock)
        self.lake = self.open(self.storage)
        self.lake.create_topic("orders", 1)
        maintain(self.lake)

    def open(self, storage):
        return Lake("memory://doctor", storage=storage, clock=self.clock, ids=CountingIds(1000))

    def found(self, storage=None):
        facts = gather("memory://doctor", lambda: storage or self.storage, self.open, self.clock, SystemIds())
        return {one.rule: one for one in examined(facts)}


@pytest.fixture
def place():
    return _Place()


def append(lake, count=1):
    for number in range(count):
        lake.topic("orders").append([{"value": str(number)}])


def test_a_lake_that_is_well(place):
    append(place.lake)
    assert place.found() == {}


def test_nothing_is_left_of_the_trial(place):
    before = set(place.storage.list_folders(""))
    place.found()
    assert set(place.storage.list_folders("")) == before


def test_a_broken_topic(place):
    place.lake.create_topic("bad", 1)
    place.storage.put("bad/_delta_log/00000000000000000001.json", b"no entry")
    assert "'bad'" in place.found()["topic-broken"].what


def test_small_files(place):
    append(place.lake, 1_000)
    assert "1,000 small files" in place.found()["small-files"].what


def test_a_group_that_stopped(place):
    append(place.lake, 3)
    LoggedPositions(GroupLog(place.lake)).publish("billing", {"orders": {0: 1}})
    place.clock.pass_s(7_200)
    maintain(place.lake)
    assert set(place.found()) == {"group-behind"}


def test_a_transaction_that_stays_open(place):
    log = TransactionLog(place.lake)
    begun = log.begin("copier", 60_000)
    producer = ProducerIdentity("copier", begun.one.producer_id, begun.one.kafka_epoch)
    log.add(producer, [("orders", (place.lake.topic("orders").id, 0))])
    place.clock.pass_s(7_200)
    maintain(place.lake)
    assert "'copier'" in place.found()["transaction-stuck"].what


def test_no_maintenance(place):
    place.clock.pass_s(7_200)
    assert set(place.found()) == {"maintenance-due"}


def test_a_broker_that_takes_no_connection(place):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        listener = Listener("PLAINTEXT", *taken.getsockname())
        ClusterLog(place.lake).register(RegisteredBroker(3, "a-registration", (listener,)), any_id=False)
        assert "Broker 3" in place.found()["brokers-silent"].what


def test_a_broker_that_takes_connections(place):
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = Listener("PLAINTEXT", *server.getsockname())
        ClusterLog(place.lake).register(RegisteredBroker(3, "a-registration", (listener,)), any_id=False)
        assert place.found() == {}


def test_a_configuration_that_contradicts_itself(place):
    place.lake.alter_topic("orders", config={"min.compaction.lag.ms": "5000"})
    place.lake.alter_config({"log.cleaner.max.compaction.lag.ms": "1000"})
    assert "orders" in place.found()["topic-config"].what


def test_a_store_that_lets_two_create_one_object(place):
    class Careless(MemoryStorage):
        """Says that it created what was there."""

        def put_if_absent(self, path, data, before=None):
            super().put_if_absent(path, data, before)
            return True

    careless = Careless("memory://doctor", place.clock)
    Lake("memory://doctor", storage=careless, clock=place.clock).create_topic("orders", 1)
    found = place.found(careless)
    assert "Stop all writers" in found["store-dishonest"].do


def test_a_store_that_refuses_to_be_written(place):
    class ReadOnly:
        """Everything of the store but writing."""

        def __getattr__(self, name):
            return getattr(place.storage, name)

        def put(self, path, data):
            raise StorageUnavailableError("The disk is read-only.")

        put_if_absent = put

    append(place.lake)
    assert "read-only" in place.found(ReadOnly())["store-unreachable"].what


def test_a_store_that_is_away():
    def away():
        raise StorageUnavailableError("No route to host.")

    (found,) = examined(gather("s3://x/y", away, Lake, SystemClock(), SystemIds()))
    assert found.rule == "store-unreachable"


def test_an_address_without_a_lake_is_left_without_one(tmp_path):
    address = tmp_path / "none"
    opened = lambda store: Lake(address, False, storage=store)  # noqa: E731
    (found,) = examined(gather(str(address), lambda: open_storage(address), opened, SystemClock(), SystemIds()))
    assert found.rule == "no-lake"
    assert not address.exists()


def test_a_cut_that_is_kept(place):
    append(place.lake, 3)
    size = sum(segment.size for segment in place.lake.topic("orders").state().all_segments())
    create_cut(place.lake, "friday", keep=True)
    create_cut(place.lake, "saturday")
    place.lake.delete_records("orders", {0: -1})
    facts = gather("memory://doctor", lambda: place.storage, place.open, place.clock, SystemIds())
    assert (facts.kept_cuts, facts.kept_bytes) == ({"friday": size}, size)
