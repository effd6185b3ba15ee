"""What a mirror says of itself, in the follower: `__mirror/status`, and as metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import orjson

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.delta.layout import MIRROR_FOLDER
from tidelog.log.storage.port import Storage

STATUS = f"{MIRROR_FOLDER}/status"


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One table: the newest version at the source, as last seen, and at the follower.

    `problem`: why it is not shipped, "" where it is. `waiting_bytes`: of removed files that are still to be deleted
    here, at `waiting_until_ms` at the latest.
    """

    source: int
    follower: int
    behind_bytes: int = 0
    problem: str = ""
    waiting_bytes: int = 0
    waiting_until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """A mirror's state at `now_ms` by its machine's clock.

    `run`: a UUID of its process. `whole_ms`: the follower is as the source was at that time, at least, in all tables at
    once; None before its first whole round, and while a table begins again. `behind_ms`: the age of the oldest entry
    that the follower lacks, 0 where it lacks none; `delay_ms`: how old the last shipped entries were when they were
    shipped (median, the oldest). `cluster_epoch`: the source's. `ended`: the process stopped in order.
    """

    source: str
    run: str
    now_ms: int
    whole_ms: int | None = None
    behind_entries: int = 0
    behind_bytes: int = 0
    behind_ms: int = 0
    delay_ms: tuple[int, int] = (0, 0)
    rounds: int = 0
    shipped_entries: int = 0
    shipped_bytes: int = 0
    cluster_epoch: int = 0
    ended: bool = False
    problem: str = ""
    tables: Mapping[str, TableStatus] = field(default_factory=dict)
    diverged: Sequence[Mapping[str, Any]] = ()

    def encoded(self) -> bytes:
        """Its bytes in the follower."""
        return orjson.dumps(asdict(self))

    @classmethod
    def decoded(cls, data: bytes) -> Self:
        """From its bytes. Raises `ValueError`, `TypeError`, `KeyError`."""
        body = orjson.loads(data)
        tables = {name: TableStatus(**one) for name, one in body.pop("tables").items()}
        return cls(**{**body, "delay_ms": tuple(body["delay_ms"]), "tables": tables})


def read_status(follower: Storage) -> MirrorStatus | None:
    """What the newest mirror said; None where none ever did, or it can't be read."""
    try:
        return MirrorStatus.decoded(follower.get(STATUS))
    except (ObjectNotFoundError, ValueError, TypeError, KeyError):
        return None


def write_status(follower: Storage, status: MirrorStatus, *, durable: bool = False) -> None:
    """Replace what the mirror says; `durable`: so that it survives a power loss."""
    follower.put(STATUS, status.encoded())
    if durable:
        follower.sync([STATUS])


def troubles_of(status: MirrorStatus | None, now_ms: int) -> list[str]:
    """What is not well with a mirror that runs, in words."""
    if status is None or status.ended:
        return []
    said = [status.problem] if status.problem else []
    said += [f"Table {name} is not shipped: {one.problem}" for name, one in status.tables.items() if one.problem]
    if (late_ms := lag_ms(status, now_ms)) > LATE_MS:
        said.append(f"The follower is {status.behind_entries:,} entries behind, the oldest of {late_ms / 1000:,.0f} s.")
    return said


def lag_ms(status: MirrorStatus, now_ms: int) -> int:
    """How far the follower is behind, by the reader's clock: what a mirror that is silent doesn't see counts, too."""
    silent_ms = max(0, now_ms - status.now_ms)
    return status.behind_ms + (silent_ms if silent_ms > SILENT_MS else 0)


def described(status: MirrorStatus, now_ms: int) -> dict[str, Any]:
    """The status as a document, with the lag by the reader's clock."""
    return asdict(status) | {"lag_ms": lag_ms(status, now_ms), "age_ms": max(0, now_ms - status.now_ms)}


# A mirror says something each second, unless a round takes longer.
SILENT_MS = 5_000
# A follower whose oldest missing entry is of this age is behind.
LATE_MS = 300_000
