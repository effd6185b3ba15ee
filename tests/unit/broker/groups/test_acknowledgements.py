"""What a coordinator tells members that don't say what they own."""

from support.heartbeating import JOINS, Heard, request_of, topics

from tidelog.broker.groups.acknowledgements import Acknowledgements
from tidelog.groups.model import AssignedPartition, Assignment
from tidelog.groups.rules.streams.heartbeat import StreamsHeartbeat
from tidelog.groups.topology import Tasks


class Coordinator:
    """One that has heartbeats decided, and remembers what members said and were given."""

    def __init__(self, **partitions: int) -> None:
        self.heard = Heard(topics(**partitions))
        self.acknowledgements = Acknowledgements()

    def beat(self, name: str, owned: Assignment | None = None, *, epoch: int | None = None) -> Assignment | None:
        """What a member hears. It is in the epoch that the group knows it in."""
        epoch = self.heard.group.members[name].epoch if epoch is None else epoch
        says = {} if owned is None else {"owned": [(one.topic_id, one.partition) for one in owned]}
        request = request_of(name, epoch, says)
        group = self.heard.view.group
        heard = request if group is None else self.acknowledgements.heard(request, group)
        return self.acknowledgements.answered(request, self.heard.ask(heard), believed=heard is request).assigned


def parts(*numbers: int) -> Assignment:
    return frozenset(AssignedPartition("id-t", "t", number) for number in numbers)


def test_what_a_member_has_not_taken_yet_it_takes_before_it_gives_it_up() -> None:
    """A client that has taken nothing yet, and hears that it has nothing, would say no more: the others would wait."""
    group = Coordinator(t=2)
    assert group.beat("a", epoch=JOINS) == parts(0, 1)
    assert group.beat("b", epoch=JOINS) == frozenset()
    assert group.heard.group.members["a"].revoking == parts(1)
    assert group.beat("a") == parts(0, 1)
    assert group.beat("a") == parts(0, 1)
    assert group.beat("a", parts(0, 1)) == parts(0)
    assert group.beat("a") == parts(0)
    assert group.beat("a", parts(0)) == parts(0)
    assert group.beat("b") == parts(1)


def test_an_assignment_comes_again_until_the_member_says_that_it_owns_it() -> None:
    group = Coordinator(t=2)
    assert group.beat("a", epoch=JOINS) == parts(0, 1)
    assert group.beat("a") == parts(0, 1)
    assert group.beat("a", parts(0, 1)) is None
    assert group.beat("a") is None


def test_what_a_member_said_before_it_was_told_more_is_no_revocation() -> None:
    """It says all once more, or repeats a request word for word, while it takes what it was given."""
    group = Coordinator(t=2)
    group.beat("a", epoch=JOINS)
    group.beat("b", epoch=JOINS)
    assert group.beat("a", frozenset()) == parts(0, 1)
    assert group.beat("b", frozenset()) is None
    assert group.beat("a", parts(0, 1)) == parts(0)
    assert group.beat("a", parts(0, 1)) == parts(0)
    assert group.beat("a", parts(0)) == parts(0)
    assert group.beat("b", frozenset()) == parts(1)


def test_one_that_begins_again_owns_nothing() -> None:
    group = Coordinator(t=2)
    group.beat("a", epoch=JOINS)
    group.beat("b", epoch=JOINS)
    assert group.beat("a", frozenset(), epoch=JOINS) == parts(0)
    assert group.beat("b") == parts(1)


def test_another_coordinator_goes_by_what_the_group_has() -> None:
    """A client says all to it, and may be about to take what it was given by the one before."""
    group = Coordinator(t=2)
    group.beat("a", epoch=JOINS)
    group.beat("b", epoch=JOINS)
    group.acknowledgements = Acknowledgements()
    assert group.beat("a", frozenset()) == parts(0, 1)
    group.beat("b")
    assert group.beat("a", parts(0, 1)) == parts(0)
    assert group.beat("a", parts(0)) == parts(0)
    assert group.beat("b") == parts(1)


def test_one_that_has_not_heard_of_its_epoch_says_so_to_another_coordinator() -> None:
    group = Coordinator(t=2)
    group.beat("a", epoch=JOINS)
    group.beat("b", epoch=JOINS)
    group.beat("a", parts(0, 1))
    before = group.heard.group.members["a"].epoch
    group.beat("a", parts(0))  # without an answer
    group.acknowledgements = Acknowledgements()
    assert group.beat("a", parts(0), epoch=before) == parts(0)


def test_one_that_is_no_member_is_forgotten() -> None:
    group = Coordinator(t=2)
    group.beat("a", epoch=JOINS)
    group.beat("b", epoch=JOINS)
    group.acknowledgements.keep({"b"})
    assert group.beat("a") == parts(0)


def test_what_a_member_of_another_protocol_says_is_for_the_rule_to_refuse() -> None:
    """Any client may name a member of any group."""
    group = Coordinator(t=2)
    group.beat("a", epoch=JOINS)
    request = StreamsHeartbeat(group_id="g", member_id="a", epoch=1, owned=Tasks())
    assert group.acknowledgements.heard(request, group.heard.group) is request
