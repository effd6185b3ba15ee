"""What members of a group with epochs were given last, and what they said since that they own. Pure.

A client says what it owns once it has taken what it was given: librdkafka and Java's leave it out of all other
heartbeats. So it is given one assignment at a time. One that was given a partition, has not taken it yet, and hears
that it has nothing finds that it has nothing already, and says no more about it: the coordinator would wait for its
revocation for as long as a rebalance may take.

In a heartbeat that says all, or is repeated word for word, a client says what it owned when it acknowledged last, be it
about to take what it was given since. So only what differs from that is an acknowledgement.

It is lost without harm: a client that has come to another coordinator says all once more.
"""

from collections.abc import Container
from dataclasses import replace
from typing import Any, TypeVar

from tidelog.groups.model import AnyGroup, ConsumerMember, StreamsMember
from tidelog.groups.rules.modern.heartbeat import JOINS, Heartbeat, HeartbeatAnswer
from tidelog.groups.rules.streams.heartbeat import StreamsAnswer, StreamsHeartbeat
from tidelog.groups.topology import Tasks

# What a member says that it owns: partitions by the ids of their topics, or tasks. What it is given is an `Assignment`,
# or tasks: one group's is the one or the other, which this treats alike.
Said = frozenset[tuple[str, int]] | Tasks
Request = TypeVar("Request", Heartbeat, StreamsHeartbeat)
Answer = TypeVar("Answer", HeartbeatAnswer, StreamsAnswer)


class Acknowledgements:
    """One group's, at its coordinator."""

    def __init__(self) -> None:
        self._said: dict[str, Said] = {}
        # What each has not acknowledged yet, by the epoch in which it was given: in two at most.
        self._given: dict[str, dict[int, Any]] = {}

    def keep(self, members: Container[str]) -> None:
        """Forget all but these."""
        self._said = {name: owned for name, owned in self._said.items() if name in members}
        self._given = {name: given for name, given in self._given.items() if name in members}

    def heard(self, request: Request, group: AnyGroup) -> Request:
        """The request as it is to be taken: of a member that is about to take what it was given, which may own that.

        `group`: as it was last seen. One of which nothing is known here is taken for about to take all that it may.
        """
        name, member = request.member_id, group.members.get(request.member_id)
        kind = StreamsMember if isinstance(request, StreamsHeartbeat) else ConsumerMember
        if request.epoch <= JOINS or request.owned is None or not isinstance(member, kind):
            return request
        held: Any = _said(member.held)
        owned: Any = request.owned
        if owned - held:  # more than it may: that is for the rule
            return request
        if name not in self._said:
            self._said[name], self._given[name] = owned, {request.epoch: member.held}
        given = self._given[name].get(request.epoch)
        is_about_to_take = given is not None and owned == self._said[name] and owned != _said(given)
        return replace(request, owned=held) if is_about_to_take else request

    def answered(self, request: Request, answer: Answer, *, believed: bool) -> Answer:
        """The answer with what the member is to hear now: until it acknowledges what it was given last, that once more.

        What it is to give up is its own until it says that it did, so that it may take it first. `believed`: the
        request was taken as it is.
        """
        name = request.member_id
        member: Any = answer.group.members.get(name)
        if request.epoch < JOINS or member is None:
            return answer
        if request.owned is not None and believed:
            self._said[name], self._given[name] = request.owned, {}
        else:
            answer = replace(answer, assigned=self._due(name, member, answer.assigned))
        if answer.assigned is not None:
            before = {
                epoch: given for epoch, given in self._given.get(name, {}).items() if epoch == member.previous_epoch
            }
            self._given[name] = {**before, answer.epoch: answer.assigned}
        return answer

    def _due(self, name: str, member: Any, assigned: Any) -> Any:
        """What a member hears that does not say what it owns; `assigned`: what its group's rule would have it hear."""
        said, given = self._said.get(name), self._given.get(name, {})
        if said is None:
            return assigned
        last = given[max(given)] if given else None
        if last is not None and _said(last) != said and not last - member.held and last - member.assigned:
            return last
        return member.assigned if assigned is None and _said(member.assigned) != said else assigned


def _said(given: Any) -> Said:
    """What a member says that has all of this."""
    if isinstance(given, Tasks):
        return given
    return frozenset((one.topic_id, one.partition) for one in given)
