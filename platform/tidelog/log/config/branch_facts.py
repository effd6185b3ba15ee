"""What a lake's own file says of a branch: of which lake it is one, and how far it is made (docs/format.md, 1.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import orjson

from tidelog.log.base.errors import LakeNotWholeError, UnsupportedFormatError
from tidelog.log.delta import layout

# While it is made, or taken away; and once it is whole.
BRANCHING: Final = "branching"
BRANCH: Final = "branch"
_LARGEST: Final = 2**63


@dataclass(frozen=True, slots=True)
class Branch:
    """That a lake is a branch of the lake at the address `of`, as that was at `time_ms` (since the epoch).

    `cut`: the name of the cut that it was made at, "" without one. `note`: what the source keeps of it. `tables`: while
    it is made, up to which version it has each table of the source; None once it is whole. `discarding`: it goes.
    """

    of: str
    cut: str
    time_ms: int
    note: str = ""
    tables: Mapping[str, int] | None = None
    discarding: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it is a lake that programs may write to."""
        return self.tables is None and not self.discarding

    def made(self) -> Self:
        """The same, whole."""
        return replace(self, tables=None)

    def require_whole(self, uri: str) -> None:
        """Refuse to write to a branch that is not whole. Raises `LakeNotWholeError`."""
        if self.discarding:
            raise LakeNotWholeError(
                f"The lake {uri}, a branch of {self.of}, is being discarded: nothing is written to it any more."
                f" 'tidelog lake branch --discard {uri}' ends that, where it was broken off."
            )
        if not self.is_whole:
            raise LakeNotWholeError(
                f"The lake {uri} is not whole: it is being made a branch of {self.of}, or that was broken off. Writers"
                " wait until it is there: 'tidelog lake branch', called as before, goes on, and 'tidelog lake branch"
                f" --discard {uri}' gives it up."
            )

    def to_json(self) -> dict[str, Any]:
        """What the lake's file holds of it, by key."""
        body: dict[str, Any] = {"of": self.of, "cut": self.cut, "time_ms": self.time_ms, "note": self.note}
        body = {key: value for key, value in body.items() if value != ""}
        if self.is_whole:
            return {BRANCH: body}
        return {
            BRANCHING: body
            | ({} if self.tables is None else {"tables": dict(self.tables)})
            | ({"discarding": True} if self.discarding else {})
        }


def parse_branch(data: bytes, uri: str) -> Branch | None:
    """What the file of the lake at `uri` says of a branch; None for none. Raises `UnsupportedFormatError`."""
    body = orjson.loads(data)
    for key in (BRANCHING, BRANCH):
        if (found := body.get(key)) is not None:
            branch = _parsed(found, key)
            if branch is None:
                raise UnsupportedFormatError(
                    f"{uri}/{layout.LAKE_FILE} has '{key}' and does not say which lake this is a branch of. Restore it"
                    " from a copy; or delete the folder and make the branch again."
                )
            return branch
    return None


def _parsed(body: Any, key: str) -> Branch | None:
    if not isinstance(body, dict):
        return None
    texts = [body.get("of"), body.get("cut", ""), body.get("note", "")]
    time_ms, discarding, tables = body.get("time_ms"), body.get("discarding", False), body.get("tables")
    making = key == BRANCHING
    if (
        not all(isinstance(text, str) for text in texts)
        or type(time_ms) is not int
        or not isinstance(discarding, bool)
        or not (_are_versions(tables) if making and not discarding else tables is None or _are_versions(tables))
    ):
        return None
    return Branch(texts[0], texts[1], time_ms, texts[2], tables if making else None, discarding and making)


def _are_versions(tables: Any) -> bool:
    return isinstance(tables, dict) and all(type(one) is int and 0 <= one < _LARGEST for one in tables.values())
