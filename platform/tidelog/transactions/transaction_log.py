"""The log of transactions, `__transaction_state`: it alone orders what is decided of them."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tidelog.log.base.errors import (
    CorruptLogError,
    InvalidTransactionTimeoutError,
    TidelogError,
    UnsupportedFormatError,
)
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.segments.writer import Staged
from tidelog.log.state.producer_memory import new_producer_id
from tidelog.log.state.topic_state import ROWS
from tidelog.transactions import operator_rules, part_rules, rules
from tidelog.transactions.model import Intent, IntentPart, Transactional, TransactionKey, Verdict
from tidelog.transactions.open_parts import OpenTransaction, Place
from tidelog.transactions.part_rules import BatchJudge, Begun, Ended, ProducerIdentity, TransactionBatch
from tidelog.transactions.rows import KIND, TransactionsFold

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Transactions that are still to be finished.

    `open`: with their producers' time-outs in ms. `incomplete`: committed, and not marked complete.
    """

    open: Sequence[tuple[OpenTransaction, int]] = ()
    incomplete: Mapping[TransactionKey, Transactional] = field(default_factory=dict)


class TransactionLog:
    """The transactions of a lake. All methods may be called from many threads.

    The table is made by the first write; before that there are no transactions. Writes raise `OutcomeUnknownError`
    when the store stops answering: each may be repeated, and sees what is there.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._log = lake.row_log(layout.TRANSACTIONS_TABLE, KIND)

    # --- reading -------------------------------------------------------------------------------------------

    def get(self, transactional_id: str) -> Transactional | None:
        """What is known of a transactional id, at the head of the log."""
        return self._log.look(lambda fold: fold.get(transactional_id))

    def all(self) -> list[Transactional]:
        """Every transactional id, sorted."""
        return self._log.look(lambda fold: list(fold.all()))

    def incomplete(self, topic_id: str | None = None) -> list[Transactional]:
        """Those with an incomplete intent, or only those whose incomplete intent names a topic."""
        return self._log.look(lambda fold: list(fold.incomplete(topic_id)))

    def verdict(self, key: TransactionKey) -> Verdict:
        """The log's verdict on a transaction."""
        return self.verdicts([key])[key]

    def verdicts(self, keys: Collection[TransactionKey]) -> dict[TransactionKey, Verdict]:
        """The log's verdicts on transactions, at one time."""
        return self._log.look(lambda fold: {key: rules.verdict(fold, key) for key in keys})

    def check_epoch(self, key: TransactionKey) -> Transactional:
        """The id of a transaction. Raises `ProducerFencedError`, `UnknownTransactionalIdError`."""
        return self._log.look(lambda fold: rules.require_epoch(fold, key))

    def completed(self) -> rules.Completed:
        """Which intents are complete by now."""
        return self._log.look(rules.completed)

    def tables(self) -> list[RowLog[TransactionsFold]]:
        """The table itself; none before the first write."""
        return [self._log] if self._log.fact(ROWS) is not None else []

    # --- deciding ------------------------------------------------------------------------------------------

    def init(self, transactional_id: str, timeout_ms: int) -> Transactional:
        """Begin a new epoch. Raises `InvalidTransactionTimeoutError`."""
        self._check_timeout(timeout_ms)
        new_id = new_producer_id(self._lake.ids)
        return self._decide(lambda fold, now_ms: rules.decide_init(fold, transactional_id, timeout_ms, new_id, now_ms))

    def begin_new_epochs(self) -> int:
        """Begin a new epoch of every transactional id, which fences all producers; how many there are."""
        new_id = new_producer_id(self._lake.ids)
        return self._decide(lambda fold, now_ms: operator_rules.decide_new_epochs(fold, new_id, now_ms))

    def _check_timeout(self, timeout_ms: int) -> None:
        most_ms = self._lake.config().transaction_max_timeout_ms
        if not 0 < timeout_ms <= most_ms:
            raise InvalidTransactionTimeoutError(
                f"transaction.timeout.ms={timeout_ms} is refused: the lake allows 1 to {most_ms}"
                " (transaction.max.timeout.ms), so that a transaction whose producer died does not hold up others for"
                " long. Give less, or let the lake allow more."
            )

    def intent(
        self,
        key: TransactionKey,
        parts: Sequence[IntentPart],
        groups: Sequence[str],
        batch: int | None = None,
        completed: TransactionKey | None = None,
    ) -> Intent | None:
        """Commit a transaction; its intent, None when it is complete. Raises as `rules.decide_intent`."""
        return self._decide(
            lambda fold, now_ms: rules.decide_intent(fold, key, parts, groups, now_ms, batch, completed)
        )

    def abort(self, key: TransactionKey) -> Verdict:
        """Abort a transaction unless it is decided; the verdict on it."""
        return self._decide(lambda fold, now_ms: rules.decide_abort(fold, key, now_ms))

    def abort_open(self, transactional_id: str, producer_id: int | None = None) -> TransactionKey:
        """Abort what an id has open, whatever it is. Raises as `operator_rules.decide_abort_open`."""
        return self._decide(
            lambda fold, now_ms: operator_rules.decide_abort_open(fold, transactional_id, now_ms, producer_id)
        )

    def mark_complete(self, *keys: TransactionKey) -> None:
        """Write the completion markers of intents: Kafka's CompleteCommit. A repeat changes nothing."""
        self._decide(lambda fold, now_ms: rules.decide_complete(fold, keys, now_ms))

    # --- what brokers hold for Kafka's clients -------------------------------------------------------------

    def open(self, transactional_id: str) -> OpenTransaction | None:
        """What a transactional id has open, as far as it was added in the log."""
        return self._log.look(lambda fold: fold.open(transactional_id))

    def all_with_open(
        self, names: Iterable[str] | None = None
    ) -> dict[str, tuple[Transactional, OpenTransaction | None]]:
        """Every transactional id, or those of `names` that there are, and what each has open: of one look."""

        def at(fold: TransactionsFold) -> dict[str, tuple[Transactional, OpenTransaction | None]]:
            ids = fold.all() if names is None else [one for name in names if (one := fold.get(name)) is not None]
            return {one.transactional_id: (one, fold.open(one.transactional_id)) for one in ids}

        return self._log.look(at)

    def all_open(self) -> list[OpenTransaction]:
        """Every open transaction that has added something in the log, by transactional id."""
        return self._log.look(lambda fold: list(fold.all_open()))

    def unfinished(self, cached: Unfinished, version: int) -> tuple[Unfinished, int]:
        """What is unfinished, and at which version of the log: `cached`, if that is still the `version` it is from."""

        def at(fold: TransactionsFold) -> tuple[Unfinished, int]:
            if self._log.version == version:
                return cached, version
            timeouts = [
                (there, one.timeout_ms)
                for there in fold.all_open()
                if (one := fold.get(there.key.transactional_id)) is not None
            ]
            incomplete = {one.key_of(one.intent): one for one in fold.incomplete() if one.intent is not None}
            return Unfinished(timeouts, incomplete), self._log.version

        return self._log.look(at)

    def begin(self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None = None) -> Begun:
        """Begin a new epoch, for a client. Raises `InvalidTransactionTimeoutError`, and as `decide_begin`."""
        self._check_timeout(timeout_ms)
        new_id = new_producer_id(self._lake.ids)
        return self._decide(
            lambda fold, now_ms: part_rules.decide_begin(fold, transactional_id, timeout_ms, new_id, now_ms, expected)
        )

    def add(
        self, producer: ProducerIdentity, places: Sequence[tuple[str, Place]] = (), groups: Sequence[str] = ()
    ) -> TransactionKey:
        """Add partitions and groups to a producer's transaction. Raises as `part_rules.decide_add`."""
        return self._decide(lambda fold, now_ms: part_rules.decide_add(fold, producer, places, groups, now_ms))

    def require_added(
        self, producer: ProducerIdentity, places: Sequence[Place] = (), groups: Sequence[str] = ()
    ) -> TransactionKey:
        """The producer's open transaction, which all of this was added to. Raises as `part_rules.require_added`."""
        return self._log.look(lambda fold: part_rules.require_added(fold, producer, places, groups))

    def judge(self, batches: Iterable[TransactionBatch]) -> list[int | TidelogError | None]:
        """Of each batch how many records its transaction has in its partition, if it is new; else None.

        Or what it is refused for. Each is judged as if those before it were staged, and counted as if they were not.
        """

        def at(fold: TransactionsFold) -> list[int | TidelogError | None]:
            judge, answers = BatchJudge(fold), list[int | TidelogError | None]()
            for batch in batches:
                try:
                    answers.append(part_rules.staged_before(fold, batch) if judge.take(batch) else None)
                except TidelogError as e:
                    answers.append(e)
            return answers

        return self._log.look(at)

    def stage(self, parts: Sequence[tuple[TransactionBatch, Sequence[Staged]]]) -> list[TidelogError | None]:
        """Note staged, durable segments as parts of their transactions; of each None, or why it is not noted."""
        return self._decide(lambda fold, now_ms: part_rules.decide_stage(fold, parts, now_ms))

    def end(
        self,
        producer: ProducerIdentity,
        *,
        commit: bool,
        raises_epoch: bool,
        completed: TransactionKey | None = None,
        is_late: Callable[[TransactionKey, int], bool] | None = None,
    ) -> Ended:
        """End a producer's transaction. Raises as `part_rules.decide_end`."""
        return self._decide(
            lambda fold, now_ms: part_rules.decide_end(
                fold,
                producer,
                now_ms,
                commit=commit,
                raises_epoch=raises_epoch,
                completed=completed,
                is_late=is_late,
            )
        )

    def time_out(self, key: TransactionKey) -> Ended | None:
        """Abort a transaction that has had its time, and fence its producer; None when it is not open any more."""
        return self._decide(lambda fold, now_ms: part_rules.decide_time_out(fold, key, now_ms))

    def abort_marker(self, producer_id: int, epoch: int, places: Collection[Place]) -> Ended | None:
        """Abort what a producer has open in one of these places. Raises as `operator_rules.decide_abort_marker`."""
        return self._decide(
            lambda fold, now_ms: operator_rules.decide_abort_marker(fold, producer_id, epoch, places, now_ms)
        )

    # --- upkeep --------------------------------------------------------------------------------------------

    def publish_floor(self, topic: str, topic_id: str, version: int) -> list[str]:
        """Refuse intents of older segments from now on; the ids whose incomplete intents name the topic."""
        return self._decide(lambda fold, _: rules.decide_floor(fold, topic, topic_id, version))

    def drop_floors(self) -> None:
        """Drop the purge floors of topics that are gone; those of a topic that can't be opened stay."""
        floors = self._log.look(lambda fold: dict(fold.floors))
        gone = [topic_id for topic_id, floor in floors.items() if self._id_of(floor.topic) not in (topic_id, None)]
        if gone:
            self._decide(lambda fold, _: rules.decide_drop_floors(fold, gone))

    def expire(self) -> list[str]:
        """Expire ids that did nothing for the lake's `transactional.id.expiration.ms`; their names."""
        since_ms = self._lake.clock.now_ms() - self._lake.config().transactional_id_expiration_ms
        if not self._log.look(lambda fold: rules.decide_expire(fold, since_ms).rows):
            return []
        return self._decide(lambda fold, _: rules.decide_expire(fold, since_ms))

    def _id_of(self, topic: str) -> str | None:
        """The topic's id, "" when there is none of that name, None when it can't be opened."""
        try:
            state = self._lake.peek(topic)
        except (CorruptLogError, UnsupportedFormatError):
            return None
        return "" if state is None else state.topic_id

    def _decide(self, rule: Callable[[TransactionsFold, int], RowOutcome[R]]) -> R:
        now_ms = self._lake.clock.now_ms()
        return self._log.commit(lambda fold: rule(fold, now_ms))
