"""What a lake's cluster is, as its log says: brokers, how many of them lead a topic, and the epoch of all that."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tidelog.log.base.errors import TidelogError
from tidelog.log.base.kafka_codes import KafkaCode

# The number of leaders that stands for all brokers that serve.
ALL: Final = 0


class DuplicateBrokerError(TidelogError, kafka_code=KafkaCode.DUPLICATE_BROKER_REGISTRATION):
    """Another broker that lives has the id."""


class UnknownBrokerError(TidelogError, kafka_code=KafkaCode.BROKER_ID_NOT_REGISTERED):
    """No broker has the id."""


class StaleRegistrationError(TidelogError, kafka_code=KafkaCode.STALE_BROKER_EPOCH):
    """The registration is over: it was taken for dead, drained, or the broker was unregistered."""


class BrokerState(StrEnum):
    """A broker's life. It never goes back: a broker that was gone registers again."""

    RUNNING = "running"
    DRAINING = "draining"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Listener:
    """Where clients reach a broker, under the name of a listener."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class RegisteredBroker:
    """A broker as it has registered. `registration`: a UUID of this one life; `started_ms`: the process' start.

    Every decision on a broker names its registration, so that one about an earlier life has no effect.
    """

    id: int
    registration: str
    listeners: tuple[Listener, ...] = ()
    rack: str | None = None
    started_ms: int = 0
    state: BrokerState = BrokerState.RUNNING

    @property
    def is_live(self) -> bool:
        """Whether the log does not say that it is gone."""
        return self.state is not BrokerState.GONE


@dataclass(frozen=True, slots=True)
class TopicLeaders:
    """How many brokers lead a topic's partitions, `ALL` for all; fewer, where fewer serve.

    `topic`: its id, "" for all topics of which nothing else is said; `name`: its name at the time. `since_ms`: of the
    decision, by its broker's clock.
    """

    topic: str
    name: str
    leaders: int
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class LeadersChange:
    """How many brokers are to lead a topic, where `before` is what the log says; None: nothing of this topic."""

    before: TopicLeaders | None
    after: TopicLeaders


@dataclass(frozen=True, slots=True)
class ClusterState:
    """All brokers by id, and the epoch: it rises with each change of `serving`, of `dealt`, and of numbers of leaders.

    `leaders`: by topic's id. Of a topic of which nothing is said, one broker leads all partitions.
    """

    brokers: Mapping[int, RegisteredBroker] = field(default_factory=dict)
    epoch: int = 0
    leaders: Mapping[str, TopicLeaders] = field(default_factory=dict)

    def leaders_of(self, topic: str) -> int:
        """How many brokers lead a topic's partitions; `ALL` for all."""
        told = self.leaders.get(topic) or self.leaders.get("")
        return 1 if told is None else told.leaders

    @property
    def controller(self) -> RegisteredBroker | None:
        """The broker of the lowest id that serves: it decides how many lead each topic."""
        return next(iter(self.serving), None)

    @property
    def serving(self) -> tuple[RegisteredBroker, ...]:
        """The brokers that clients are sent to, by id: those that run; where none does, those that drain."""
        by_state = {
            state: tuple(one for _, one in sorted(self.brokers.items()) if one.state is state)
            for state in (BrokerState.RUNNING, BrokerState.DRAINING)
        }
        return by_state[BrokerState.RUNNING] or by_state[BrokerState.DRAINING]

    @property
    def live(self) -> tuple[RegisteredBroker, ...]:
        """The brokers that run or drain, by id."""
        return tuple(one for _, one in sorted(self.brokers.items()) if one.is_live)

    @property
    def dealt(self) -> tuple[int, ...]:
        """The ids that leaders are dealt over: of the brokers that serve, and of the others, which may come back.

        Not of the others where they are more than those that serve: these have come under other ids, or won't come.
        """
        known, serving = tuple(sorted(self.brokers)), tuple(one.id for one in self.serving)
        return known if len(known) <= 2 * len(serving) else serving

    def of(self, registration: str) -> RegisteredBroker | None:
        """The broker of a registration; None when its id has another one by now, or none."""
        return next((one for one in self.brokers.values() if one.registration == registration), None)
