"""The rules of a cluster: which broker may register, drain, be taken for dead, and say how many lead a topic. All pure.

Every rule takes the state that its entry would follow, and gives rows; one that changes which brokers serve, over which
ids leaders are dealt, or how many lead a topic, raises the epoch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tidelog.cluster.model import (
    BrokerState,
    ClusterState,
    DuplicateBrokerError,
    LeadersChange,
    RegisteredBroker,
    StaleRegistrationError,
    TopicLeaders,
    UnknownBrokerError,
)
from tidelog.cluster.rows import ClusterFold, broker_row, epoch_row, leaders_row, unregistered_row
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.rows.schema import Row

R = TypeVar("R")

# The lowest id that a broker without one of its own gets.
FIRST_ID = 1


def decide_register(
    state: ClusterState, wanted: RegisteredBroker, *, any_id: bool, takes_place: bool = False
) -> RowOutcome[RegisteredBroker]:
    """Register a broker that runs under its id, or with `any_id` under the lowest one that no live broker has.

    `takes_place`: a live broker of the same addresses was this one's predecessor, whose process ended without a word:
    it is gone. Only for a process that has just begun to listen there. One that has the id that is asked for is not
    judged by its addresses: its lease says whether it lives.
    Raises `DuplicateBrokerError` when another live broker has the id, `StaleRegistrationError` for a registration that
    is over. A repeat changes nothing.
    """
    broker = state.of(wanted.registration)
    if broker is not None and broker.state is BrokerState.RUNNING:
        return RowOutcome((), broker)
    if broker is not None:
        raise _stale(wanted.registration)
    before = _predecessors(state, wanted, None if any_id else wanted.id) if takes_place else []
    taken = {one.id for one in state.live if one not in before}
    broker_id = next(n for n in range(FIRST_ID, FIRST_ID + len(taken) + 1) if n not in taken) if any_id else wanted.id
    if broker_id in taken:
        other = state.brokers[broker_id]
        where = ", ".join(f"{one.host}:{one.port}" for one in other.listeners)
        raise DuplicateBrokerError(
            f"Broker id {broker_id} is taken by a broker that lives, at {where}. Two brokers of one id would take"
            " each other's clients. Give this one another id, or none; or stop that one first."
        )
    registered = replace(wanted, id=broker_id, state=BrokerState.RUNNING)
    gone = [replace(one, state=BrokerState.GONE) for one in before if one.id != broker_id]
    return _changing(state, [broker_row(one) for one in (*gone, registered)], registered)


def decide_drain(state: ClusterState, registration: str) -> RowOutcome[None]:
    """Have clients go to the others. A repeat changes nothing. Raises `StaleRegistrationError`."""
    broker = state.of(registration)
    if broker is None or not broker.is_live:
        raise _stale(registration)
    if broker.state is BrokerState.DRAINING:
        return RowOutcome((), None)
    return _changing(state, [broker_row(replace(broker, state=BrokerState.DRAINING))], None)


def decide_gone(state: ClusterState, registration: str) -> RowOutcome[bool]:
    """Say that a broker is gone: itself at its end, or one that saw its death; whether this said it first.

    A broker that has registered again since is another one: nothing happens to it.
    """
    broker = state.of(registration)
    if broker is None or not broker.is_live:
        return RowOutcome((), False)
    return _changing(state, [broker_row(replace(broker, state=BrokerState.GONE))], True)


def decide_unregister(state: ClusterState, broker_id: int) -> RowOutcome[None]:
    """Forget a broker. One that lives after all registers again. Raises `UnknownBrokerError`."""
    if broker_id not in state.brokers:
        raise UnknownBrokerError(f"No broker has the id {broker_id}; 'tidelog broker list' names those there are.")
    return _changing(state, [unregistered_row(broker_id)], None)


def decide_leaders(
    state: ClusterState, registration: str, changes: Sequence[LeadersChange]
) -> RowOutcome[Sequence[TopicLeaders]]:
    """Have other numbers of brokers lead topics; those that are decided.

    Only the controller decides, and only of topics of which the log says what it decided on.
    """
    if state.controller is None or state.controller.registration != registration:
        return RowOutcome((), ())
    decided = [change.after for change in changes if state.leaders.get(change.after.topic) == change.before]
    return _changing(state, [leaders_row(one) for one in decided], decided)


def _predecessors(state: ClusterState, wanted: RegisteredBroker, but: int | None) -> list[RegisteredBroker]:
    """The live brokers of the same addresses, all but the one of an id."""
    places = _places(wanted)
    return [one for one in state.live if one.id != but and _places(one) == places]


def _places(broker: RegisteredBroker) -> set[tuple[str, int]]:
    return {(one.host, one.port) for one in broker.listeners}


def decide_epoch(state: ClusterState, above: int) -> RowOutcome[int]:
    """Raise the epoch above another cluster's, whose place this one takes; the epoch from then on.

    Clients that knew that one's leaders follow this one's (Kafka: metadata of an older leader epoch is stale).
    """
    if state.epoch > above:
        return RowOutcome((), state.epoch)
    return RowOutcome([epoch_row(above + 1)], above + 1)


def _changing(state: ClusterState, rows: Sequence[Row], response: R) -> RowOutcome[R]:
    """The outcome of rows; with another epoch where leaders may be others after them than before."""
    after = ClusterFold(state)
    after.take(rows)
    if _served_by(after.state) != _served_by(state):
        rows = [*rows, epoch_row(state.epoch + 1)]
    return RowOutcome(rows, response)


def _served_by(state: ClusterState) -> tuple[Sequence[str], Sequence[int], Mapping[str, int]]:
    """What leaders follow from."""
    leaders = {topic: told.leaders for topic, told in state.leaders.items()}
    return [one.registration for one in state.serving], state.dealt, leaders


def _stale(registration: str) -> StaleRegistrationError:
    return StaleRegistrationError(
        f"The registration {registration} of a broker is over: it was taken for dead, stopped, or unregistered. A"
        " broker that still runs registers again by itself."
    )
