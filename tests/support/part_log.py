"""The log of transactions in tests of the rules that brokers hold: it goes on by what is decided, without a store."""

from collections.abc import Iterable
from typing import Any

from support.logs import START_MS

from tidelog.log.base.errors import TidelogError
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.segments.writer import Staged
from tidelog.transactions import part_rules, rules
from tidelog.transactions.model import Transactional, TransactionKey
from tidelog.transactions.part_rules import Begun, Ended, ProducerIdentity, TransactionBatch
from tidelog.transactions.rows import KIND, TransactionsFold

NOW = START_MS
PLACE = ("id-a", 0)
COMMIT, ABORT = True, False


class Log:
    """The log of transactions, going on by what is decided."""

    def __init__(self) -> None:
        self.fold = TransactionsFold()
        self.rows: list[Any] = []
        self.paths = 0

    def take(self, outcome: RowOutcome[Any]) -> Any:
        rows = [KIND.schema.checked(row) for row in outcome.rows]
        self.rows.extend(rows)
        self.fold.take(rows)
        return outcome.response

    def begin(self, name: str = "x", expected: ProducerIdentity | None = None) -> ProducerIdentity:
        begun: Begun = self.take(part_rules.decide_begin(self.fold, name, 60_000, 77, NOW, expected))
        return identity(begun.one)

    def add(self, producer: ProducerIdentity, *partitions: int, groups: Iterable[str] = ()) -> TransactionKey:
        places = [("a", ("id-a", partition)) for partition in partitions]
        key: TransactionKey = self.take(part_rules.decide_add(self.fold, producer, places, groups, NOW))
        return key

    def stage(
        self, producer: ProducerIdentity, first: int = 0, count: int = 5, *, partition: int = 0, begins: bool = True
    ) -> TidelogError | None:
        self.paths += 1
        one = batch(producer, first, count, partition=partition, begins=begins)
        (answer,) = self.take(part_rules.decide_stage(self.fold, [(one, [segment(self.paths, partition)])], NOW))
        found: TidelogError | None = answer
        return found

    def end(self, producer: ProducerIdentity, commit: bool, *, raises: bool = True, **more: Any) -> Ended:
        ended: Ended = self.take(
            part_rules.decide_end(self.fold, producer, NOW, commit=commit, raises_epoch=raises, **more)
        )
        return ended

    def complete(self, ended: Ended) -> None:
        assert ended.intent is not None
        self.take(rules.decide_complete(self.fold, [ended.one.key_of(ended.intent)], NOW))

    def get(self, name: str = "x") -> Transactional:
        found = self.fold.get(name)
        assert found is not None
        return found

    def paths_open(self) -> list[str]:
        there = self.fold.open("x")
        return [] if there is None else [s.path for part in there.parts for s in part.segments]


def identity(one: Transactional) -> ProducerIdentity:
    return ProducerIdentity(one.transactional_id, one.producer_id, one.kafka_epoch)


def segment(number: int, partition: int = 0, version: int = 3) -> Staged:
    return Staged(partition, f"partition={partition}/{number}.parquet", 5, 100, NOW, NOW + 1, version, "id-a")


def batch(
    producer: ProducerIdentity, first: int = 0, count: int = 5, *, partition: int = 0, begins: bool = True
) -> TransactionBatch:
    return TransactionBatch(producer, "a", "id-a", partition, first, count, begins)
