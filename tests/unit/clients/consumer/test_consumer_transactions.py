"""Consumers whose group's offsets wait for an open transaction: they wait for little, and go on where it says."""

from support.consumers import PATIENCE_S, at, consumer, poll_until
from support.logs import Calls, values
from support.producers import live_lake, producer
from support.waiting import eventually

from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.partitions import ConsumerGroupMetadata
from tidelog.log.lake import Lake

PARTITIONS = 40
# The first ones, at 0, 20, 60, 140, 300 ms, and then the pause between two; each looks at two logs, or three.
FIRST_LOOKS, PAUSE_S, LOGS = 5, 0.25, 3


def open_transaction(lake: Lake) -> Producer:
    """One that holds the group's offset 1 of every partition."""
    made = producer(lake, transactional_id="x")
    made.init_transactions()
    made.begin_transaction()
    made.send_offsets_to_transaction([at(1, p) for p in range(PARTITIONS)], ConsumerGroupMetadata("g"))
    return made


def test_many_partitions_wait_by_few_looks_and_start_where_the_transaction_says() -> None:
    lake, storage = live_lake()
    lake.create_topic("t", PARTITIONS)
    everywhere = list(range(PARTITIONS))
    lake.topic("t").append(values(*["0"] * PARTITIONS, *["1"] * PARTITIONS, partition=everywhere * 2))
    with open_transaction(lake) as copier, consumer(lake, enable_auto_commit="false") as reader:
        reader.assign([at(partition=p) for p in everywhere])
        storage.hook = calls = Calls()
        began_s = lake.clock.elapsed_s()
        assert reader.poll(0.8) is None

        def looks() -> int:
            return sum(method == "get" and path.startswith("__") for method, path in calls.seen)

        eventually(lambda: looks() >= 4, "it looks again")
        assert looks() <= LOGS * (FIRST_LOOKS + (lake.clock.elapsed_s() - began_s) / PAUSE_S + 1)
        copier.commit_transaction()
        seen: set[int | None] = set()
        while len(seen) < PARTITIONS:
            message = reader.poll(PATIENCE_S)
            assert message is not None
            assert (message.error(), message.value(), message.offset()) == (None, b"1", 1)
            seen.add(message.partition())


def test_who_waits_for_a_dead_producer_goes_on_after_its_time_out() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 1)
    lake.topic("t").append(values("0", "1"))
    dead = producer(lake, transactional_id="x", transaction_timeout_ms=1_000)
    dead.init_transactions()
    dead.begin_transaction()
    dead.send_offsets_to_transaction([at(1)], ConsumerGroupMetadata("g"))
    with consumer(lake, enable_auto_commit="false") as reader:
        assert reader.committed([at()])[0].offset == at().offset
        reader.assign([at()])
        (first, *_) = poll_until(lambda: bool(reader.assignment()[0].offset == 2), reader)
        assert first.offset() == 0
    dead.close()
