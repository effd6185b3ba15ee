"""What entries bring along: the files that must be at the follower before them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from tidelog.log.delta.actions import Add, CommitInfo, Entry, Metadata, Remove, decode_entry
from tidelog.log.delta.layout import entry_path, pack_epoch
from tidelog.mirror.plan import markers
from tidelog.transactions.rows import TRANSACTION
from tidelog.transactions.rules import INTENT


@dataclass(frozen=True, slots=True)
class ShippedEntry:
    """An entry as a mirror sees it. Files by path below the lake's root, with their bytes.

    `adds`: they must be there before it. `removes`: it takes them out. `strange`: an engine other than tidelog wrote
    them; a reader by such an engine may miss them. `intents`: a decided transaction needs them.
    `decided`: the newest decision of transactional ids. `applied`: the decisions that it applies.
    """

    table: str
    version: int
    data: bytes
    info: CommitInfo
    adds: Mapping[str, int]
    removes: frozenset[str]
    strange: Mapping[str, int]
    intents: Mapping[str, int]
    decided: Mapping[str, int]
    applied: Mapping[str, int]
    alters: bool


def read_entry(table: str, version: int, data: bytes, *, decides: bool) -> ShippedEntry:
    """Read an entry of a table; `decides`: it is of the log of transactions. Raises `CorruptLogError`."""
    entry = decode_entry(version, data, f"{table}/{entry_path(version)}")
    adds = {f"{table}/{unquote(a.path)}": a.size for a in entry.actions if isinstance(a, Add)}
    removes = frozenset(f"{table}/{unquote(a.path)}" for a in entry.actions if isinstance(a, Remove))
    touched = () if entry.touched is None else entry.touched.files
    strange = {f"{table}/{unquote(r.path)}": r.size for r in touched}
    return ShippedEntry(
        table,
        version,
        data,
        entry.info,
        adds,
        removes,
        strange,
        intent_files(entry) if decides else {},
        decisions(entry) if decides else {},
        {} if decides else markers(entry.actions),
        any(isinstance(a, Metadata) for a in entry.actions),
    )


def intent_files(entry: Entry) -> dict[str, int]:
    """The staged segments that the intents of an entry commit."""
    found: dict[str, int] = {}
    for row in entry.info.rows:
        if row.get("kind") == TRANSACTION and row.get("event") == INTENT:
            for part in row.get("parts") or ():
                found |= {f"{part['topic']}/{s['path']}": s["size"] for s in part["segments"]}
    return found


def decisions(entry: Entry) -> dict[str, int]:
    """{transactional id: epoch · 2^32 + number} of the newest decision that an entry's rows tell."""
    return {
        row["id"]: pack_epoch(row["epoch"], row["number"])
        for row in entry.info.rows
        if row.get("kind") == TRANSACTION and not row.get("deleted")
    }


def needed_files(entries: Iterable[ShippedEntry]) -> dict[str, int]:
    """The files that entries bring to the follower."""
    found: dict[str, int] = {}
    for entry in entries:
        found |= entry.adds
        found |= entry.strange
        found |= entry.intents
    return found
