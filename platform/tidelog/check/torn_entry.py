"""What a torn log entry still says: pure, over its bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidelog.log.base.errors import CorruptLogError
from tidelog.log.delta.actions import Action, Add, CommitInfo, Remove, decode_entry, encode_entry
from tidelog.log.rules.topics import REPAIR

_INFO = b'{"commitInfo":'
_ANY_INFO = b'{"commitInfo":{"tidelog":{"request":"","actions":1}}}'


@dataclass(frozen=True, slots=True)
class TornText:
    """The whole actions before the cut.

    `complete`: no action is lost. tidelog writes `commitInfo` last, so that holds when its line was begun, and
    nothing else proves it: an entry cut between two lines looks like a shorter one.
    """

    actions: tuple[Action, ...]
    complete: bool

    @property
    def adds(self) -> list[Add]:
        """The segments that the entry was to add, as far as it says."""
        return [a for a in self.actions if isinstance(a, Add)]


def read_torn(data: bytes) -> TornText:
    """Read what is left of an entry that `decode_entry` calls torn."""
    whole: list[bytes] = []
    actions: list[Action] = []
    lines = data.split(b"\n")
    for line in lines:
        if _is_info(line):
            break
        try:
            actions.extend(decode_entry(0, line + b"\n" + _ANY_INFO, "").actions)
        except CorruptLogError:
            break
        whole.append(line)
    cut_in_info = len(lines) == len(whole) + 1 and _is_info(lines[-1])
    # Another engine's entry may have its commitInfo anywhere; ours is byte for byte what we would write.
    own = encode_entry(actions, CommitInfo(0, "")).split(b"\n")[: len(whole)] == whole
    return TornText(tuple(actions), cut_in_info and own)


def _is_info(line: bytes) -> bool:
    """Whether the line is a `commitInfo`, or its beginning: no other action of ours starts like it."""
    return line.startswith(_INFO) or (_INFO.startswith(line) and len(line) > len(b'{"'))


def completed(text: TornText, now_ms: int, request_id: str, rows: tuple[Mapping[str, Any], ...] = ()) -> bytes:
    """The entry with a new last line; `rows`: those of the files that it adds, in a table of rows."""
    blind = all(not isinstance(a, Remove) and (not isinstance(a, Add) or a.data_change) for a in text.actions)
    info = CommitInfo(now_ms, REPAIR, request_id, blind_append=blind and bool(text.adds), rows=rows)
    return encode_entry(text.actions, info)


def emptied(now_ms: int, request_id: str, aside: str, actions: Sequence[Action] = ()) -> bytes:
    """An entry without actions of its own, which keeps the version taken; `aside` names where the old one went.

    `actions`: what takes back the entries before it that tidelog did not write.
    """
    return encode_entry(actions, CommitInfo(now_ms, REPAIR, request_id, parameters={"setAside": aside}))
