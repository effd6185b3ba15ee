"""What a cut is: a point in time of a whole lake, as a plain value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.log.base.errors import TidelogError

# A partition by topic and number.
Place = tuple[str, int]


class UnknownCutError(TidelogError):
    """The lake has no cut of that name."""


class CutExistsError(TidelogError):
    """The lake has a cut of that name already."""


class InvalidCutNameError(TidelogError):
    """A name that no cut can have."""


class CutLostError(TidelogError):
    """What a cut names of a topic can't be read any more, or is another topic's by now."""


@dataclass(frozen=True, slots=True)
class CutTable:
    """A table in a cut: the version of its newest entry that is part of it.

    `topic_id`: its `tidelog.topic.id` then. `ranges`: of each partition the log start and log end offset then; a table
    of rows has one partition. `is_rows`: it is a table of rows, and no topic.
    """

    version: int
    topic_id: str
    ranges: tuple[tuple[int, int], ...]
    is_rows: bool = False

    @property
    def ends(self) -> dict[int, int]:
        """The log end offset of each partition."""
        return {partition: end for partition, (_, end) in enumerate(self.ranges)}


@dataclass(frozen=True, slots=True)
class Cut:
    """A point in time of a lake: each transaction is in it as a whole or not at all, and no position is past its end.

    `name`: "" of one that no table names. `id`: another UUID for each making. `time_ms`: when it was made, ms since the
    epoch, by its maker's clock. `kept`: what it needs is held until it is deleted. `tables`: by their folder below the
    lake's root, but for `__cluster` and `__cuts`. `positions`: of each group the next offset to read, by partition.
    """

    name: str
    id: str
    time_ms: int
    tables: Mapping[str, CutTable] = field(default_factory=dict)
    positions: Mapping[str, Mapping[Place, int]] = field(default_factory=dict)
    kept: bool = False

    @property
    def topics(self) -> dict[str, CutTable]:
        """The topics, by name."""
        return {name: table for name, table in self.tables.items() if not table.is_rows}

    def topic(self, name: str) -> CutTable | None:
        """A topic's table; None where the cut has none of that name."""
        table = self.tables.get(name)
        return None if table is None or table.is_rows else table

    @property
    def partition_rows(self) -> list[tuple[str, int, int, int, int]]:
        """(topic, version, partition, start, end) of all topics' partitions, in order."""
        tables = sorted(self.topics.items())
        return [(topic, one.version, p, *ends) for topic, one in tables for p, ends in enumerate(one.ranges)]

    @property
    def position_rows(self) -> list[tuple[str, str, int, int]]:
        """(group, topic, partition, position) of all groups, in order."""
        groups = sorted(self.positions.items())
        return [(group, *place, position) for group, at in groups for place, position in sorted(at.items())]

    @property
    def records(self) -> int:
        """How many offsets its topics cover: no fewer than records."""
        return sum(end - start for table in self.topics.values() for start, end in table.ranges)


def no_such_cut(name: str) -> UnknownCutError:
    """What is raised for a cut that is not there."""
    return UnknownCutError(f"There is no cut {name!r}. 'tidelog cut list' names those there are.")


def cut_exists(name: str) -> CutExistsError:
    """What is raised for a name that is taken."""
    return CutExistsError(
        f"There is a cut {name!r} already, and a name means one point in time. Take another name, or delete that one"
        f" ('tidelog cut delete {name}')."
    )
