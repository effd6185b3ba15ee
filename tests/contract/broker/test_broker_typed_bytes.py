"""Values of a typed topic come back byte for byte through a broker, whatever is done to the topic meanwhile."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.brokers import running_broker
from support.examples import one_in
from support.transactional_clients import WAIT_S, transactional
from support.value_subjects import Subjects
from support.value_typings import FLIGHT, LATER, avro_payload, flight, prefixed

from tidelog.check.lake import check_lake
from tidelog.log.lake import Lake
from tidelog.retention.compaction.run import LocalCompactor, compact
from tidelog.retention.rewrites.commit import rewrite
from tidelog.retention.rewrites.executors import LocalExecutor, Task
from tidelog.retention.rewrites.units import rewrite_codec, runs, unit_of

# What another team made of the same record: `number` of another type, and a field that is no column.
OTHER = {"type": "record", "name": "Flight", "fields": [
    {"name": "number", "type": "string"}, {"name": "any", "type": ["int", "string"]}]}  # fmt: skip
VERSIONS = (FLIGHT, LATER, OTHER)
CONFIG = {
    "value.columns": "avro",
    "value.schema.subject": "typed-value",
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
}
FORMS = ("good", "header", "truncated", "text", "empty", "tombstone")
Sent = list[tuple[str, str, int]]  # key, form and number of each record
Header = tuple[str, bytes]


class BrokerWorld:
    """A lake with a typed topic, a broker over it, and what it must hold: {offset: (key, value)}.

    `ever`: what it has held. A broker may still have what compaction took away, until it looks at the log.
    """

    def __init__(self, lake: Lake, bytes_: str) -> None:
        self.lake, self.broker, self.address = lake, ExitStack(), ""
        self.subjects = Subjects(lake).no_rules()
        lake.create_topic("typed", 1, CONFIG | {"value.bytes": bytes_})
        self.ids: list[int] = []
        self.expected: dict[int, tuple[bytes, bytes | None]] = {}
        self.ever: dict[int, tuple[bytes, bytes | None]] = {}
        self.new_schema([])
        self.restart([])

    def value(self, form: str, number: int) -> tuple[bytes | None, list[Header]]:
        """A value and its headers."""
        which = number % len(self.ids)
        record: dict[str, Any] = {"number": str(number), "any": number} if which == 2 else flight(number)
        if which == 1:
            record |= {"cancelled": bool(number % 2), "plane": {"tail": "x" * number, "year": number}}
        payload = avro_payload(VERSIONS[which], record)
        value = prefixed(self.ids[which], payload)
        if form == "header":
            return payload, [("__value_schema_id", b"\1" + self.subjects.guid(self.ids[which]))]
        others = {"truncated": value[:-1], "text": b"text %d" % number, "empty": b"", "tombstone": None}
        return others.get(form, value), []

    def send(self, producer: Producer, sent: Sent) -> list[tuple[bytes, bytes | None]]:
        """Produce records and wait for their answers; their keys and values."""
        errors: list[Any] = []
        made = [(key.encode(), *self.value(form, number)) for key, form, number in sent]
        for key, value, headers in made:
            producer.produce("typed", value, key, 0, headers=headers, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(WAIT_S) == 0
        assert errors == [None] * len(made)
        return [(key, value) for key, value, _ in made]

    def appended(self, records: list[tuple[bytes, bytes | None]], end: int) -> None:
        """Note records that must be stored from `end` on, and nothing besides."""
        new = [one for one in self.stored() if one[0] >= end]
        assert [one[1:] for one in new] == records
        self.expected |= {offset: (key, value) for offset, key, value in new}
        self.ever |= self.expected

    def end(self) -> int:
        return self.lake.topic("typed").offsets()[0][1]

    # --- steps ---------------------------------------------------------------------------------------------

    def produce(self, sent: Sent) -> None:
        end, producer = self.end(), Producer({"bootstrap.servers": self.address, "linger.ms": 50})
        self.appended(self.send(producer, sent), end)

    def transactions(self, sent: Sent) -> None:
        """One that is committed, in which a schema comes, and one that is aborted."""
        end, producer = self.end(), transactional(self.address)
        producer.begin_transaction()
        records = self.send(producer, sent[:1])
        self.new_schema([])
        records += self.send(producer, sent[1:])
        producer.commit_transaction(WAIT_S)
        producer.begin_transaction()
        self.send(producer, sent)
        producer.abort_transaction(WAIT_S)
        self.appended(records, end)

    def new_schema(self, _: Sent) -> None:
        if len(self.ids) < len(VERSIONS):
            self.ids.append(self.subjects.register("typed-value", orjson.dumps(VERSIONS[len(self.ids)]).decode()))

    def merge(self, _: Sent) -> None:
        state, config = self.lake.topic("typed").state(), self.lake.topic_config("typed")
        units = [unit_of(state, "typed", run, config, rewrite_codec(config)) for run in runs(state, 0)]
        executor, tasks = LocalExecutor(self.lake.storage, self.lake.ids), [Task(unit) for unit in units]
        assert not rewrite(self.lake, "typed", tasks, executor, operation="OPTIMIZE", parameters={}).failures

    def compact(self, _: Sent) -> None:
        later_ms = self.lake.clock.now_ms() + 8 * 86_400_000  # the newest segment is active for so long
        compactor = LocalCompactor(self.lake.storage, self.lake.ids)
        assert not compact(self.lake, "typed", now_ms=later_ms, compactor=compactor).failures
        newest = {key: offset for offset, (key, _) in sorted(self.expected.items())}
        there = {offset for offset, _, _ in self.stored()}
        for offset, (key, value) in list(self.expected.items()):
            if offset not in there:
                assert newest[key] > offset or value is None, f"offset {offset} is gone"
                del self.expected[offset]

    def turn(self, _: Sent) -> None:
        """Store bytes in the other way, from here on."""
        bytes_ = self.lake.topic_config("typed").value_bytes
        self.lake.alter_topic("typed", config={"value.bytes": "keep" if bytes_ == "derive" else "derive"})

    def restart(self, _: Sent) -> None:
        """A broker that has nothing in its caches."""
        self.broker.close()
        self.address = self.broker.enter_context(running_broker(self.lake))
        self.ever = dict(self.expected)

    # --- what is there -------------------------------------------------------------------------------------

    def stored(self) -> list[tuple[int, bytes, bytes | None]]:
        table = pa.Table.from_batches(self.lake.topic("typed").read(0))
        columns = [table.column(name).to_pylist() for name in ("offset", "key", "value")]
        return list(zip(*columns, strict=True))

    def consumed(self) -> Iterator[tuple[int, bytes, bytes | None]]:
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "g", "enable.auto.commit": False})
        consumer.assign([TopicPartition("typed", 0, OFFSET_BEGINNING)])
        try:
            offset = -1
            while offset < max(self.expected):
                (message,) = consumer.consume(1, WAIT_S) or [None]
                assert message is not None, f"nothing comes behind offset {offset}"
                assert message.error() is None
                offset = message.offset()
                yield offset, message.key(), message.value()
        finally:
            consumer.close()

    def verify(self) -> None:
        wanted = [(offset, *one) for offset, one in sorted(self.expected.items())]
        assert self.stored() == wanted
        found = {offset: (key, value) for offset, key, value in self.consumed()}
        assert found == {offset: self.ever[offset] for offset in found}
        assert self.expected.items() <= found.items()
        report = check_lake(self.lake.storage, deep=True, clock=self.lake.clock)
        assert [one for one in report.findings if one.severity == "error"] == []


@contextmanager
def world(folder: Path, bytes_: str) -> Iterator[BrokerWorld]:
    with Lake(folder) as lake:
        made = BrokerWorld(lake, bytes_)
        with made.broker:
            yield made


RECORDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(FORMS), st.integers(0, 40)), min_size=2, max_size=6
)
STEPS = ("produce", "transactions", "new_schema", "merge", "compact", "turn", "restart")


@pytest.mark.parametrize("bytes_", ["keep", "derive"])
@settings(one_in(10), phases=(Phase.explicit, Phase.generate))
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), RECORDS), min_size=3, max_size=7))
def test_bytes_stay_the_same_through_a_broker(
    tmp_path_factory: pytest.TempPathFactory, bytes_: str, steps: list[tuple[str, Sent]]
) -> None:
    with world(tmp_path_factory.mktemp("lake") / "lake", bytes_) as one:
        one.produce([(key, form, number) for number, (key, form) in enumerate(zip("abcabc", FORMS, strict=True))])
        for name, sent in steps:
            getattr(one, name)(sent)
            one.verify()


def test_each_step_once(tmp_path: Path) -> None:
    """What few random examples may leave out."""
    sent = [("a", "good", 1), ("b", "header", 2), ("c", "tombstone", 3), ("a", "good", 5), ("b", "text", 4)]
    with world(tmp_path / "lake", "derive") as one:
        for name in ("produce", "transactions", "merge", "produce", "compact", "turn", "transactions", "restart"):
            getattr(one, name)(sent)
            one.verify()
