"""The log of a lake's cluster, `__cluster`: it alone says which brokers there are."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

from tidelog.cluster import rules
from tidelog.cluster.model import ClusterState, LeadersChange, RegisteredBroker, TopicLeaders
from tidelog.cluster.rows import KIND, ClusterFold
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.state.topic_state import ROWS, TOPIC_ID

R = TypeVar("R")


class ClusterLog:
    """The brokers of a lake. All methods may be called from many threads.

    The table is made by the first write; before that there are no brokers. Writes raise `OutcomeUnknownError` when the
    store stops answering: each may be repeated, and sees what is there.
    """

    def __init__(self, lake: Lake) -> None:
        self._log = lake.row_log(layout.CLUSTER_TABLE, KIND)

    def look(self) -> ClusterState:
        """The brokers at the head of the log."""
        return self._log.look(lambda fold: fold.state)

    @property
    def version(self) -> int:
        """The version of the log as of the last look at it, -1 before its first entry."""
        return self._log.version

    def cluster_id(self) -> str | None:
        """The lake's id as Kafka writes one, 22 characters: that of the table; None before a broker ever ran."""
        table_id = self._log.fact(TOPIC_ID)
        return None if table_id is None else urlsafe_b64encode(UUID(table_id).bytes).rstrip(b"=").decode()

    def tables(self) -> list[RowLog[ClusterFold]]:
        """The table itself; none before the first write."""
        return [self._log] if self._log.fact(ROWS) is not None else []

    # --- deciding ------------------------------------------------------------------------------------------

    def register(self, wanted: RegisteredBroker, *, any_id: bool, takes_place: bool = False) -> RegisteredBroker:
        """Register a broker. Raises as `rules.decide_register`."""
        return self._decide(lambda state: rules.decide_register(state, wanted, any_id=any_id, takes_place=takes_place))

    def drain(self, registration: str) -> None:
        """Have clients go to the others. Raises `StaleRegistrationError`."""
        self._decide(partial(rules.decide_drain, registration=registration))

    def gone(self, registration: str) -> bool:
        """Say that a broker is gone; whether this said it first."""
        return self._decide(partial(rules.decide_gone, registration=registration))

    def unregister(self, broker_id: int) -> None:
        """Forget a broker. Raises `UnknownBrokerError`."""
        self._decide(partial(rules.decide_unregister, broker_id=broker_id))

    def lead(self, registration: str, changes: Sequence[LeadersChange]) -> Sequence[TopicLeaders]:
        """Have other numbers of brokers lead topics, as `rules.decide_leaders`."""
        return self._decide(partial(rules.decide_leaders, registration=registration, changes=changes))

    def raise_epoch(self, above: int) -> int:
        """Raise the epoch above another cluster's, whose place this one takes; the epoch from then on."""
        return self._decide(partial(rules.decide_epoch, above=above))

    def _decide(self, rule: Callable[[ClusterState], RowOutcome[R]]) -> R:
        return self._log.commit(lambda fold: rule(fold.state))
