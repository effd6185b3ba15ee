"""What happened in a run: what actors asked for and saw, and every byte that the log was given."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from sim_journal import Journal
from sim_replay import is_durable
from sim_scheduler import Process
from sim_storage import LOG

Ranges = dict[int, tuple[int, int]]
TOPIC = "orders"
PREFIX = f"{TOPIC}{LOG}"


@dataclass
class Attempt:
    """An append as its caller saw it. `ranges` is None unless it was acknowledged with offsets."""

    actor: str
    values: dict[int, list[str]]
    acks: str
    life: str
    began: float
    outcome: str = "unknown"  # until it is "acked", "refused", or the "repeat" of one that was there
    ranges: Ranges | None = None
    ended: float = 0.0
    head: int = -1  # the newest entry when it ended


@dataclass
class PowerLoss:
    """`head`: the newest entry; `durable`: the newest one that promised that everything up to it survives."""

    at: float
    head: int
    durable: int


@dataclass
class History(Journal):
    """The run's record."""

    entries: list[bytes] = field(default_factory=list)
    strays: list[int] = field(default_factory=list)
    segments: dict[str, bytes] = field(default_factory=dict)
    hints: list[bytes] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    power_losses: list[PowerLoss] = field(default_factory=list)
    # (topic id, partition) -> offset -> value, as readers saw them; and the largest acknowledged end
    reads: dict[tuple[str, int], dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    acked_ends: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    acked_starts: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    deleted_lives: set[str] = field(default_factory=set)
    # (topic id, partition, offset) that were reported to a reader as lost
    lost: set[tuple[str, int, int]] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)

    # --- the storage's observer ----------------------------------------------------------------------------

    def called(self, process: Process, method: str, path: str, result: object) -> None:
        shown = f"{len(result)} bytes" if isinstance(result, bytes) else result if _is_plain(result) else "..."
        self.note(f"{method} {path} {shown}", process)

    def stored(self, method: str, path: str, data: bytes) -> None:
        if path.endswith("_last_checkpoint"):
            self.hints.append(data)
        elif path.startswith(PREFIX) and path.endswith(".json"):
            self._entry(int(path[len(PREFIX) : -len(".json")]), data)
        elif path.startswith(f"{TOPIC}/partition="):
            self.segments[path.removeprefix(f"{TOPIC}/")] = data

    def _entry(self, version: int, data: bytes) -> None:
        if version < len(self.entries):
            self.strays.append(version)
            self.counts["stray"] += 1
            self.note(f"stray {version}")
        elif version > len(self.entries):
            self.violate(f"entry {version} is stored, but {len(self.entries)} never was")
        else:
            self.entries.append(data)

    # --- what actors report --------------------------------------------------------------------------------

    def end(self, attempt: Attempt, outcome: str, ranges: Ranges | None = None) -> None:
        """An append's answer."""
        attempt.outcome, attempt.ranges = outcome, ranges
        attempt.ended, attempt.head = self.scheduler.now, len(self.entries) - 1
        self.counts[f"append {outcome}"] += 1
        self.note(f"append {attempt.values} {outcome} {ranges}")
        for partition, (_, end) in (ranges or {}).items():
            at = (attempt.life, partition)
            self.acked_ends[at] = max(self.acked_ends[at], end)

    def read(self, life: str, partition: int, offset: int, value: str) -> None:
        """A reader saw a record."""
        seen = self.reads[life, partition].setdefault(offset, value)
        if seen != value:
            self.violate(f"offset {offset} of partition {partition} was {seen} and is now {value}")

    def power_lost(self) -> None:
        durable = max((v for v, data in enumerate(self.entries) if is_durable(data)), default=-1)
        self.power_losses.append(PowerLoss(self.scheduler.now, len(self.entries) - 1, durable))
        self.counts["power lost"] += 1
        self.note("POWER LOST")


def _is_plain(result: object) -> bool:
    return result is None or isinstance(result, str | bool | int | list)
