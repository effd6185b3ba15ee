"""What members of a group of the consumer protocol were told last, and what they said since that they own. Pure.

A client says what it owns once it has done as it was told: librdkafka and Java's leave it out of all other heartbeats.
So it is told one thing at a time. One that was given a partition, has not taken it yet, and is told that it has
nothing finds that it has nothing already, and says no more about it: the coordinator would wait for its revocation for
as long as a rebalance may take.

In a heartbeat that says all, or is repeated word for word, a client says what it owned when it acknowledged last, be it
about to take what it was given since. So only what differs from that is an acknowledgement.

It is lost without harm: a client that has come to another coordinator says all that it owns.
"""

from collections.abc import Container
from dataclasses import replace

from tidelog.groups.model import Assignment, ConsumerMember
from tidelog.groups.rules.modern.heartbeat import JOINS, Heartbeat, HeartbeatAnswer
from tidelog.groups.rules.modern.reconciliation import owns_else


class Acknowledgements:
    """One group's, at its coordinator."""

    def __init__(self) -> None:
        self._said: dict[str, frozenset[tuple[str, int]]] = {}  # (topic id, partition)
        self._told: dict[str, Assignment] = {}

    def keep(self, members: Container[str]) -> None:
        """Forget all but these."""
        self._said = {name: owned for name, owned in self._said.items() if name in members}
        self._told = {name: told for name, told in self._told.items() if name in members}

    def news(self, request: Heartbeat) -> Heartbeat:
        """The request, without what its member owns where it has not acknowledged yet what it was told last."""
        said, told = self._said.get(request.member_id), self._told.get(request.member_id)
        is_old = request.epoch > JOINS and request.owned == said and told is not None and owns_else(said, told)
        return replace(request, owned=None) if is_old else request

    def answered(self, request: Heartbeat, answer: HeartbeatAnswer) -> HeartbeatAnswer:
        """The answer with what the member is to hear now: until it acknowledges what it was told last, that once more.

        What it is to give up is its own until it says that it did, so that it may take it first.
        """
        name, member = request.member_id, answer.group.members.get(request.member_id)
        if not isinstance(member, ConsumerMember):
            return answer
        if request.owned is not None:
            self._said[name] = request.owned
        elif (assigned := self._due(name, member, answer.assigned)) is not answer.assigned:
            answer = replace(answer, assigned=assigned)
        if answer.assigned is not None:
            self._told[name] = answer.assigned
        return answer

    def _due(self, name: str, member: ConsumerMember, assigned: Assignment | None) -> Assignment | None:
        """What a member hears that does not say what it owns; `assigned`: what its group's rule would have it hear."""
        said, told = self._said.get(name), self._told.get(name)
        if told is not None and owns_else(said, told) and told <= member.held and not told <= member.assigned:
            return told
        return member.assigned if assigned is None and owns_else(said, member.assigned) else assigned
