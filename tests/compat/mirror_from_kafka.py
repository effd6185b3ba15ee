"""`tidelog mirror start --from kafka://…` against Kafka itself: what its log has that no lake's own log has."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from compat.suite import FAILED, PASSED, Outcome
from confluent_kafka import KafkaException, Producer, TopicPartition
from support.kafka_copies import WAIT_S, admin, create, differences, killed_again_and_again, mirror_once, of_kafka
from support.kafka_copies import produced as produce
from support.waiting import eventually

from tidelog.log.lake import Lake

SUITE = "mirror-from-kafka"

_KEYS = 10
_ROUNDS, _EACH = 5, 100


def _logs(address: str, folder: Path) -> None:
    """Compacted and trimmed logs, an empty one, and one with the broker's times: records, offsets and bounds."""
    create(
        address, "compacted", 1, cleanup_policy="compact", segment_ms="200", min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="500", preallocate="true",
    )  # fmt: skip
    create(address, "trimmed", 2)
    create(address, "stamped", 1, message_timestamp_type="LogAppendTime")
    create(address, "empty", 1)
    producer = Producer({"bootstrap.servers": address})
    for number in range(_ROUNDS):
        produce(producer, "compacted", 0, [f"{number}-{each % _KEYS}" for each in range(_EACH)])
    for partition, count in enumerate((100, 50)):
        produce(producer, "trimmed", partition, [str(number) for number in range(count)])
    produce(producer, "stamped", 0, [str(number) for number in range(10)], timestamp=5)
    asked = admin(address).delete_records([TopicPartition("trimmed", 0, 40), TopicPartition("trimmed", 1, 50)])
    for future in asked.values():
        future.result(WAIT_S)
    more = iter(range(10_000))

    def compacted() -> bool:
        produce(producer, "compacted", 0, [f"{next(more)}-{each}" for each in range(_KEYS)])  # the next segment begins
        return len(of_kafka(address, "compacted", 0)) < _ROUNDS * _EACH // 2

    eventually(compacted, "Kafka's cleaner compacts the topic", 90)
    # The cleaner may compact again between the mirror's look and ours: what is there then, the copy has, too.
    lake = str(folder / "lake")
    mirror_once(address, lake)
    topics = ("trimmed", "stamped", "empty")
    with Lake(lake, create=False) as copy:
        found = differences(address, copy, topics)
        assert not found, found
        here = {row["offset"]: row["value"] for batch in copy.topic("compacted").read(0) for row in batch.to_pylist()}
        assert copy.topic_config("compacted").overrides["cleanup.policy"] == "compact"
    there = {row[0]: row[2] for row in of_kafka(address, "compacted", 0)}
    assert there.items() <= here.items(), "a record that Kafka still has is not in the copy"
    assert len(here) < max(here) + 1, "the copy has no gaps"


def _transactions(address: str, folder: Path) -> None:
    """Markers and records of aborted transactions are gaps; what is open is not copied."""
    create(address, "transacted", 1)
    producer = Producer({"bootstrap.servers": address, "transactional.id": "t"})
    producer.init_transactions(WAIT_S)
    for number in range(9):
        producer.begin_transaction()
        produce(producer, "transacted", 0, [f"{number}-{each}" for each in range(3)])
        if number % 3 == 1:
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)
    producer.begin_transaction()
    produce(producer, "transacted", 0, ["open"])
    lake = str(folder / "lake")
    mirror_once(address, lake)
    with Lake(lake, create=False) as copy:
        found = differences(address, copy, ("transacted",))
        assert not found, found
        assert sum(batch.num_rows for batch in copy.topic("transacted").read(0)) == 18
        assert copy.offsets("transacted") == {0: (0, 36)}
    producer.commit_transaction(WAIT_S)
    mirror_once(address, lake)
    with Lake(lake, create=False) as copy:
        found = differences(address, copy, ("transacted",))
        assert not found, found
        assert copy.offsets("transacted") == {0: (0, 38)}


def _kills(address: str, folder: Path) -> None:
    """Producers, transactions and a group go on while the mirror is killed four times."""
    killed_again_and_again(address, str(folder / "lake"), folder, 4, 1.0)


CASES: dict[str, Callable[[str, Path], None]] = {
    "compacted, trimmed and empty logs": _logs,
    "committed, aborted and open transactions": _transactions,
    "killed while all is written": _kills,
}


def outcomes(work: Path, only: str = "") -> Iterator[Outcome]:
    """Run them over one broker of Kafka's. `only`: a part of a name."""
    import broker

    work.mkdir(parents=True, exist_ok=True)
    with broker.running(work / f"kafka-{os.getpid()}") as kafka:
        for name, case in CASES.items():
            if only not in name:
                continue
            began, state, words = time.monotonic(), PASSED, ""
            folder = work / name.replace(" ", "-").replace(",", "")
            folder.mkdir(parents=True)
            try:
                case(kafka.address, folder)
            except (AssertionError, KafkaException, OSError) as error:
                state, words = FAILED, " ".join(str(error).split())[:600]
            yield Outcome(SUITE, name, state, time.monotonic() - began, words)
