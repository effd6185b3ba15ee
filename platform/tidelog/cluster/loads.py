"""What topics cost a broker of late, as its lease says where that is worth a decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# A topic that takes less of a core than this is not named.
WORTH_SAYING: Final = 0.03
_FIELD: Final = "load"
# No machine has more.
_MOST_CORES: Final = 65_536.0


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """What a topic takes of a broker's process, 1.0 for a core. `topic`: its id."""

    topic: str
    name: str
    partitions: int
    cores: float


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What a broker's process takes in all, and for which topics; nothing where none is worth saying."""

    cores: float = 0.0
    topics: Sequence[TopicLoad] = ()

    def said(self) -> dict[str, object]:
        """What a lease says of it."""
        if not self.topics:
            return {}
        topics = [[one.topic, one.name, one.partitions, round(one.cores, 2)] for one in self.topics]
        return {_FIELD: {"cores": round(self.cores, 2), "topics": topics}}


def load_of(lease: Mapping[str, Any] | None) -> BrokerLoad:
    """What a lease says; none where it says nothing that can be understood."""
    try:
        told = (lease or {})[_FIELD]
        topics = [
            TopicLoad(str(id_), str(name), int(count), _cores(cores)) for id_, name, count, cores in told["topics"]
        ]
        return BrokerLoad(_cores(told["cores"]), tuple(topics))
    except (KeyError, TypeError, ValueError, OverflowError):
        return BrokerLoad()


def _cores(told: Any) -> float:
    cores = float(told)
    if not 0 <= cores <= _MOST_CORES:  # what is no number neither
        raise ValueError(f"{cores} cores")
    return cores
