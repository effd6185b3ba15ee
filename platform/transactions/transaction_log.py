"""The log of transactions, `__transaction_state`: it alone orders what is decided of them."""

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from tidelog.log.base.errors import CorruptLogError, InvalidTransactionTimeoutError, UnsupportedFormatError
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.state.producer_memory import new_producer_id
from tidelog.log.state.topic_state import ROWS
from tidelog.transactions import rules
from tidelog.transactions.model import Intent, IntentPart, Transactional, TransactionKey, Verdict
from tidelog.transactions.rows import KIND, TransactionsFold

R = TypeVar("R")


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
        most_ms = self._lake.config().transaction_max_timeout_ms
        if not 0 < timeout_ms <= most_ms:
            raise InvalidTransactionTimeoutError(
                f"transaction.timeout.ms={timeout_ms} is refused: the lake allows 1 to {most_ms}"
                " (transaction.max.timeout.ms), so that a transaction whose producer died does not hold up others for"
                " long. Give less, or let the lake allow more."
            )
        new_id = new_producer_id(self._lake.ids)
        return self._decide(lambda fold, now_ms: rules.decide_init(fold, transactional_id, timeout_ms, new_id, now_ms))

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
        """Abort what an id has open, whatever it is. Raises as `rules.decide_abort_open`."""
        return self._decide(lambda fold, now_ms: rules.decide_abort_open(fold, transactional_id, now_ms, producer_id))

    def mark_complete(self, key: TransactionKey) -> None:
        """Write the completion marker of an intent: Kafka's CompleteCommit. A repeat changes nothing."""
        self._decide(lambda fold, now_ms: rules.decide_complete(fold, key, now_ms))

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
