"""The branches of a lake: what it notes of each, and what each says of itself."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import orjson

from tidelog.log.base.errors import ObjectNotFoundError, TidelogError
from tidelog.log.config.branch_facts import Branch, parse_branch
from tidelog.log.delta.layout import BRANCHES_FOLDER, LAKE_FILE
from tidelog.log.storage.port import Storage

# A note is small: what is longer is none.
_MOST_BYTES: Final = 64 * 1024


class BranchState(StrEnum):
    """What became of a branch, as its own file says."""

    WHOLE = "whole"
    BROKEN_OFF = "being made, or broken off"
    DISCARDING = "being discarded"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BranchNote:
    """What a lake notes of a branch: its address, and the cut and time (ms since the epoch) that it was made at."""

    id: str
    lake: str
    cut: str
    time_ms: int
    state: BranchState = BranchState.UNKNOWN

    def to_json(self) -> dict[str, Any]:
        """The fields, for a report."""
        return {"lake": self.lake, "cut": self.cut or None, "time_ms": self.time_ms, "state": self.state.value}


def note_path(note_id: str) -> str:
    """Where a lake notes a branch."""
    return f"{BRANCHES_FOLDER}/{note_id}.json"


def note_branch(storage: Storage, note: BranchNote) -> None:
    """Note a branch at its source, before it is begun, so that one that is broken off is known."""
    body = {"lake": note.lake, "cut": note.cut, "time_ms": note.time_ms}
    storage.put(note_path(note.id), orjson.dumps(body))


def branches_of(storage: Storage, opened: Callable[[str], Storage]) -> list[BranchNote]:
    """The branches that a lake has noted, oldest first, and what became of each; `opened` gives a store by address.

    Raises `StorageError` for the lake's own store.
    """
    notes = [
        note
        for info in storage.list_after(BRANCHES_FOLDER)
        if info.size <= _MOST_BYTES and (note := _read(storage, info.path)) is not None
    ]
    found = [replace(note, state=_state(note, opened)) for note in notes]
    return sorted(found, key=lambda note: (note.time_ms, note.lake))


def _read(storage: Storage, path: str) -> BranchNote | None:
    try:
        body = orjson.loads(storage.get(path))
        lake, cut, time_ms = body["lake"], body.get("cut", ""), body["time_ms"]
    except (ObjectNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(lake, str) or not isinstance(cut, str) or type(time_ms) is not int:
        return None
    return BranchNote(path.rpartition("/")[2].removesuffix(".json"), lake, cut, time_ms)


def _state(note: BranchNote, opened: Callable[[str], Storage]) -> BranchState:
    try:
        there = parse_branch(opened(note.lake).get(LAKE_FILE), note.lake)
    except ObjectNotFoundError:
        return BranchState.GONE
    except (TidelogError, ValueError, AttributeError):
        return BranchState.UNKNOWN
    return state_of(there, note.id)


def state_of(there: Branch | None, note_id: str) -> BranchState:
    """What a lake's own file says of the branch of a note; another lake at its address is not it."""
    if there is None or there.note != note_id:
        return BranchState.GONE
    if there.discarding:
        return BranchState.DISCARDING
    return BranchState.WHOLE if there.is_whole else BranchState.BROKEN_OFF
