"""A streaming query's two ways to count its batches, and the move from one to the other.

With option `topic` a batch is one entry, whose marker holds the query's newest batch. With a `topic` column a batch is
an intent, and the log of transactions holds the newest one. A query may restart the other way, and Spark then runs its
last batch again, which must count as a repeat. So a query moves one way only: once the log of transactions has a batch
of it, its batches are intents, with option `topic` too. Before its first intent each marker of the query becomes
`MOVED`, which the sink sees where it reads the marker anyway.
"""

from typing import Final

from tidelog.log.base.errors import CorruptLogError, UnsupportedFormatError
from tidelog.log.delta.actions import Txn
from tidelog.log.delta.layout import SINK_PREFIX
from tidelog.log.lake import Lake
from tidelog.log.rules.topics import Outcome
from tidelog.log.state.topic_state import TopicState
from tidelog.sinks.intents import query_transactional_id
from tidelog.transactions.transaction_log import TransactionLog

# A query's marker from its first intent on. It is above every batch: a driver that still counts by the marker is
# refused.
MOVED: Final = 2**63 - 1


def marker_id(query_id: str) -> str:
    """The transaction id of a streaming query's marker."""
    return f"{SINK_PREFIX}{query_id}"


def goes_by_intents(lake: Lake, state: TopicState, query_id: str) -> bool:
    """Whether the log of transactions counts the batches of a query with option `topic`; `state` is the topic's."""
    marker = state.txn(marker_id(query_id))
    if marker is not None:
        return marker == MOVED
    one = TransactionLog(lake).get(query_transactional_id(query_id))
    return one is not None and one.batch >= 0


def newest_by_markers(lake: Lake, query_id: str, batch: int) -> int:
    """The newest batch in a query's markers, -1 for none. Where it is below `batch`, the markers become `MOVED`.

    It looks at every topic, as a pattern subscription does: which one the query wrote to before is unknown.
    """
    markers = {topic: _marker(lake, topic, query_id) for topic in lake.topics()}
    holders = {topic: marker for topic, marker in markers.items() if marker is not None and marker != MOVED}
    newest = max(holders.values(), default=-1)
    if newest < batch:
        # A driver that was taken for dead may have committed meanwhile: each commit reads its marker again.
        moved = (lake.commit(topic, lambda state: decide_move(state, query_id, batch)).response for topic in holders)
        newest = max(moved, default=-1)
    return newest


def decide_move(state: TopicState, query_id: str, batch: int) -> Outcome[int]:
    """Set a query's marker to `MOVED`, as `batch` and those after it are intents; the response is its batch, or -1.

    A marker at or above `batch` stays as it is: that batch is a repeat.
    """
    marker = state.txn(marker_id(query_id))
    if not state.exists or marker is None or marker == MOVED:
        return Outcome((), -1)
    if marker >= batch:
        return Outcome((), marker)
    return Outcome((Txn(marker_id(query_id), MOVED),), marker, "MOVE QUERY")


def _marker(lake: Lake, topic: str, query_id: str) -> int | None:
    try:
        state = lake.peek(topic)
    except (CorruptLogError, UnsupportedFormatError):
        return None  # one broken topic must not keep every query of the lake from starting
    return None if state is None else state.txn(marker_id(query_id))
