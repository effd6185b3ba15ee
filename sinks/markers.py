"""A streaming query's two ways to count its batches, and the move from one to the other.

With option `topic` a batch is one entry, and a marker in it tells the query's newest batch. With a `topic` column it is
an intent, and the log of transactions tells. The query may be started again the other way, and its last batch, which
is run again then, must be known all the same. So the move goes one way only: a query that the log of transactions has
a batch of goes on by intents, with option `topic` too; and before its first intent every marker of the query becomes
`MOVED`, which says so where the marker is looked at anyway.
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

# In place of a batch in a query's marker: its batches are intents from there on. Above every batch, so that what still
# goes by the marker is refused.
MOVED: Final = 2**63 - 1


def marker_id(query_id: str) -> str:
    """The transaction id of a streaming query's marker."""
    return f"{SINK_PREFIX}{query_id}"


def goes_by_intents(lake: Lake, state: TopicState, query_id: str) -> bool:
    """Whether a query that writes to one topic only counts its batches in the log of transactions all the same.

    `state`: of that topic.
    """
    marker = state.txn(marker_id(query_id))
    if marker is not None:
        return marker == MOVED
    one = TransactionLog(lake).get(query_transactional_id(query_id))
    return one is not None and one.batch >= 0


def newest_by_markers(lake: Lake, query_id: str, batch: int) -> int:
    """The newest batch that markers name of a query, -1 for none. Below `batch`, they tell no batch from then on.

    It looks at every topic, as a pattern subscription does: which one the query wrote to before is unknown.
    """
    markers = {topic: _marker(lake, topic, query_id) for topic in lake.topics()}
    holders = {topic: marker for topic, marker in markers.items() if marker is not None and marker != MOVED}
    newest = max(holders.values(), default=-1)
    if newest < batch:
        # A driver that was taken for dead may have committed meanwhile: what the marker is by then counts.
        moved = (lake.commit(topic, lambda state: decide_move(state, query_id, batch)).response for topic in holders)
        newest = max(moved, default=-1)
    return newest


def decide_move(state: TopicState, query_id: str, batch: int) -> Outcome[int]:
    """Let a query's marker say that `batch` and those after it are intents; the response is the newest before, or -1.

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
