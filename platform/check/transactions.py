"""Transactions that are committed and not everywhere yet, for `check`: what is left of them, and if it can be done."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from tidelog.check.report import Finding, Kind
from tidelog.log.delta import layout
from tidelog.log.rows.schema import Row
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import Storage

# The kind of rows that hold transactions.
TRANSACTIONS = "transactions"


def check_intents(
    table: str, rows: Iterable[Row], storage: Storage, state_of: Callable[[str], TopicState | None]
) -> Iterator[Finding]:
    """What undone intents come to. `rows` of transactions, in log order; `state_of` a topic, None without one."""
    newest = {r.get("id"): r for r in rows if r.get("kind") == "transaction"}
    for name, row in newest.items():
        if row.get("deleted") or "intent_epoch" not in row:
            continue
        left = [part for part in row.get("parts") or () if _is_left(part, row, state_of(str(part.get("topic"))))]
        gone = [path for part in left for path in _missing(part, storage)]
        where = f"transactional id '{name}'"
        what = (
            f"Its transaction {row.get('intent_number')} of epoch {row['intent_epoch']} is committed, and still to come"
            f" into {', '.join(str(part.get('topic')) for part in left) or 'no topic'}"
        )
        if gone:
            todo = "Restore the file from a copy: what is committed can't be carried out without it."
            yield Finding(Kind.INTENT_FILE_MISSING, table, where, f"{what}; its file {gone[0]} is gone.", todo)
        else:
            todo = "Nothing: its producer's next instance, a reader of its groups, or maintenance carries it out."
            yield Finding(Kind.INTENT_UNDONE, table, where, f"{what}.", todo)


def _is_left(part: Mapping[str, object], row: Row, state: TopicState | None) -> bool:
    """Whether a part is still to be appended (docs/format.md, rule Y3)."""
    if state is None or not state.exists or state.topic_id != part.get("topic_id"):
        return False
    held = state.txn(f"{layout.TRANSACTION_PREFIX}{row['id']}")
    floor = state.txn(layout.TRANSACTION_FLOOR)
    version = row["intent_epoch"] * 2**32 + row.get("intent_number", 0)
    return (held is None or held < version) and (floor is None or floor < row.get("sequence", 0))


def _missing(part: Row, storage: Storage) -> Iterator[str]:
    topic, segments = part.get("topic"), part.get("segments") or ()
    found: dict[str, set[str]] = {}
    for segment in segments:
        path = f"{topic}/{segment.get('path')}"
        folder = path.rpartition("/")[0]
        if folder not in found:
            found[folder] = {o.path for o in storage.list_after(folder)}
        if path not in found[folder]:
            yield path
