"""Transactions that are committed and not complete, for `check`: what is left of them, and if it can be done."""

from collections.abc import Callable, Iterator

from tidelog.check.report import Finding, Kind
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import Storage
from tidelog.transactions.model import IntentPart
from tidelog.transactions.roll_forward import IntentMarker
from tidelog.transactions.rows import TransactionsFold


def check_intents(
    table: str, transactions: TransactionsFold, storage: Storage, state_of: Callable[[str], TopicState | None]
) -> Iterator[Finding]:
    """Each incomplete intent, and whether the files are there that it still needs. `state_of` a topic: None without."""
    for transactional in transactions.incomplete():
        intent = transactional.intent
        if intent is None:
            continue
        marker = IntentMarker.of(transactional.transactional_id, intent)
        left = [p for p in intent.parts if (state := state_of(p.topic)) is not None and marker.is_missing(state, p)]
        gone = [path for part in left for path in _missing(part, storage)]
        where = f"transactional id '{transactional.transactional_id}'"
        what = (
            f"Its transaction {intent.number} of epoch {intent.epoch} is committed, and still to be appended to"
            f" {', '.join(part.topic for part in left) or 'no topic'}"
        )
        if gone:
            todo = "Restore the file from a copy: the committed transaction can't be completed without it."
            yield Finding(Kind.INTENT_FILE_MISSING, table, where, f"{what}; its file {gone[0]} is gone.", todo)
        else:
            todo = "Nothing: its producer's next instance, a reader of its groups, or maintenance completes it."
            yield Finding(Kind.INTENT_UNDONE, table, where, f"{what}.", todo)


def _missing(part: IntentPart, storage: Storage) -> Iterator[str]:
    """Paths of a part's segments that are not in storage."""
    wanted = [f"{part.topic}/{segment.path}" for segment in part.segments]
    folders = {path.rpartition("/")[0] for path in wanted}
    found = {o.path for folder in sorted(folders) for o in storage.list_after(folder)}
    yield from (path for path in wanted if path not in found)
