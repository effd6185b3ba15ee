"""Scripted lives of groups: what Kafka's coordinator makes of each request, state by state."""

from dataclasses import replace

import pytest
from support.group_scripts import GROUP, NOW_MS, member, play

from tidelog.groups.model import GroupPhase, GroupView
from tidelog.groups.rules.members import join, leave, sync
from tidelog.log.base.errors import InconsistentProtocolError, InvalidGroupError

SCRIPTS = {
    "a first member leads at once": """
        join a            -> Completing 1 a a
        sync a 1          -> : wait
        sync a 1 a=1      -> Stable 1 a a=1
        sync a 1          -> : share 1
        heartbeat a 1     -> : fine
    """,
    "a newcomer makes all join again": """
        join a            -> Completing 1 a a
        sync a 1 a=1      -> Stable 1 a a=1
        join b            -> Preparing 1 a a=1 b+
        heartbeat a 1     -> RebalanceInProgress
        sync a 1          -> RebalanceInProgress
        rejoin a          -> Completing 2 a a b
        sync b 2          -> : wait
        sync b 2 a=1 b=2  -> Completing 2 a a b       # only the leader's shares count
        sync a 2 a=1 b=2 c=3 -> Stable 2 a a=1 b=2
        sync b 2          -> : share 2
        heartbeat b 1     -> IllegalGeneration
        heartbeat c 2     -> UnknownMember
    """,
    "who is missing from the shares gets none": """
        join a            -> Completing 1 a a
        join b            -> Preparing 1 a a b+
        rejoin a          -> Completing 2 a a b
        sync a 2 a=1      -> Stable 2 a a=1 b
        sync b 2          -> : share
        sync a 2 a=9 b=9  -> Stable 2 a a=1 b         # handed in again: nothing new
    """,
    "a follower that rejoins unchanged disturbs nobody, the leader does": """
        join a            -> Completing 1 a a
        join b            -> Preparing 1 a a b+
        join b            -> Preparing 1 a a b+       # repeated: nothing new
        rejoin b          -> Preparing 1 a a b+
        rejoin a          -> Completing 2 a a b
        sync a 2 a=1 b=2  -> Stable 2 a a=1 b=2
        rejoin b          -> Stable 2 a a=1 b=2
        rejoin b range u  -> Preparing 2 a a=1 b+=2
        rejoin a          -> Completing 3 a a b
        sync a 3 a=1 b=2  -> Stable 3 a a=1 b=2
        rejoin a          -> Preparing 3 a a+=1 b=2
    """,
    "joins while the leader works": """
        join a            -> Completing 1 a a
        rejoin a          -> Completing 1 a a         # unchanged: the answer was lost
        rejoin a range u  -> Completing 2 a a         # changed: another round, of one
        join b            -> Preparing 2 a a b+
        sync a 2 a=1      -> RebalanceInProgress
        rejoin a range u  -> Completing 3 a a b
        rejoin b range u  -> Preparing 3 a a b+
        sync a 3 a=1 b=2  -> RebalanceInProgress
    """,
    "a changed mind while others are waited for": """
        join a            -> Completing 1 a a
        sync a 1 a=1      -> Stable 1 a a=1
        join b            -> Preparing 1 a a=1 b+
        rejoin b range,sticky -> Preparing 1 a a=1 b+
        rejoin a range,sticky -> Completing 2 a a b
        sync b 2 protocol=sticky -> InconsistentProtocol
        sync b 2 protocol=range -> : wait
    """,
    "the leader leaves": """
        join a            -> Completing 1 a a
        join b            -> Preparing 1 a a b+
        rejoin a          -> Completing 2 a a b
        sync a 2 a=1 b=2  -> Stable 2 a a=1 b=2
        join c            -> Preparing 2 a a=1 b=2 c+
        leave a           -> Preparing 2 b b=2 c+     # b joined longest ago
        rejoin b          -> Completing 3 b b c
        leave b           -> Preparing 3 c c
        leave a           -> UnknownMember
        rejoin c          -> Completing 4 c c
        leave c           -> Empty 5 -
        rejoin c          -> UnknownMember
        join d            -> Completing 6 d d         # generations go on
    """,
    "the last of those waited for leaves": """
        join a            -> Completing 1 a a
        sync a 1 a=1      -> Stable 1 a a=1
        join b            -> Preparing 1 a a=1 b+
        leave a           -> Completing 2 b b
    """,
    "silent members are evicted, unless they joined since": """
        join a            -> Completing 1 a a
        join b            -> Preparing 1 a a b+
        rejoin a          -> Completing 2 a a b
        sync a 2 a=1 b=2  -> Stable 2 a a=1 b=2
        silent b@1,x@1    -> Stable 2 a a=1 b=2       # b joined in turn 2
        silent b@2        -> Preparing 2 a a=1
        rejoin b          -> UnknownMember
        rejoin a          -> Completing 3 a a
        silent a@4        -> Empty 4 -
    """,
    "the leader falls silent while it works": """
        join a            -> Completing 1 a a
        join b            -> Preparing 1 a a b+
        rejoin a          -> Completing 2 a a b
        silent a@3        -> Preparing 2 b b
        rejoin b          -> Completing 3 b b
        sync a 2 a=1      -> UnknownMember
    """,
    "the round goes on without who is late": """
        join a            -> Completing 1 a a
        join b            -> Preparing 1 a a b+
        rejoin a          -> Completing 2 a a b
        sync a 2 a=1 b=2  -> Stable 2 a a=1 b=2
        late 2            -> Stable 2 a a=1 b=2
        rejoin b range u  -> Preparing 2 a a=1 b+=2
        late 1            -> Preparing 2 a a=1 b+=2   # said of another round
        late 2            -> Completing 3 b b         # so the leader is another
        late 3            -> Empty 4 -                # a leader that hands nothing in is late too
    """,
    "nobody is late while nobody has joined": """
        join a            -> Completing 1 a a
        join b            -> Preparing 1 a a b+
        rejoin a          -> Completing 2 a a b
        sync a 2 a=1 b=2  -> Stable 2 a a=1 b=2
        leave b           -> Preparing 2 a a=1
        late 2            -> Preparing 2 a a=1
    """,
    "votes among what all support": """
        join a range,sticky      -> Completing 1 a a
        join b sticky            -> Preparing 1 a a b+
        rejoin a range,sticky    -> Completing 2 a a b
        sync a 2 protocol=range  -> InconsistentProtocol
        sync a 2 protocol=sticky -> : wait
        join c roundrobin        -> InconsistentProtocol
        join c range             -> InconsistentProtocol
        join c sticky,range      -> Preparing 2 a a b c+
        rejoin b roundrobin      -> InconsistentProtocol
    """,
    "most votes, then the first by name": """
        join a range,roundrobin   -> Completing 1 a a
        join b roundrobin,range   -> Preparing 1 a a b+
        rejoin a range,roundrobin -> Completing 2 a a b
        sync a 2 protocol=range   -> : wait
        join c roundrobin,range   -> Preparing 2 a a b c+
        rejoin a range,roundrobin -> Preparing 2 a a+ b c+
        rejoin b roundrobin,range -> Completing 3 a a b c
        sync a 3 protocol=roundrobin -> : wait
    """,
    "alone, a member may change its assignors": """
        join a range      -> Completing 1 a a
        rejoin a sticky   -> Completing 2 a a
        sync a 2 a=1      -> Stable 2 a a=1
        leave a           -> Empty 3 -
        join b range instance=i   -> Completing 4 b b
        join b2 sticky instance=i -> Completing 5 b2 b2
    """,
    "a static member comes back": """
        join a instance=i        -> Completing 1 a a
        join b                   -> Preparing 1 a a b+
        rejoin a instance=i      -> Completing 2 a a b
        sync a 2 a=1 b=2         -> Stable 2 a a=1 b=2
        join a2 instance=i       -> Stable 2 a2 a2=1 b=2   # office and share are its own
        heartbeat a 2 instance=i -> FencedInstance
        commit a 2 instance=i    -> FencedInstance
        rejoin a instance=i      -> FencedInstance
        leave a instance=i       -> FencedInstance
        sync a2 2 instance=i     -> : share 1
        commit a2 2 instance=i   -> : committed by generation 2
        silent a@3               -> Stable 2 a2 a2=1 b=2   # whoever watched a
    """,
    "a static member comes back with other topics, or another protocol": """
        join a range,sticky t instance=i   -> Completing 1 a a
        sync a 1 a=1                       -> Stable 1 a a=1
        join a2 range,sticky t,u instance=i -> Completing 2 a2 a2
        sync a2 2 a2=1                     -> Stable 2 a2 a2=1
        join a3 sticky,range t,u instance=i -> Completing 3 a3 a3
        sync a3 3 a3=1                     -> Stable 3 a3 a3=1
        sync a3 3 protocol=sticky          -> : share 1
    """,
    "a static member comes back in a round": """
        join a instance=i        -> Completing 1 a a
        sync a 1 a=1             -> Stable 1 a a=1
        join b                   -> Preparing 1 a a=1 b+
        join a2 instance=i       -> Completing 2 a2 a2 b
        join b2 instance=j       -> Preparing 2 a2 a2 b b2+
        rejoin a2 instance=i     -> Preparing 2 a2 a2+ b b2+
        rejoin b                 -> Completing 3 a2 a2 b b2
        join a3 instance=i       -> Preparing 3 a3 a3+ b b2  # the leader may be sharing out for a2
    """,
    "a static member that is late keeps its place": """
        join a instance=i        -> Completing 1 a a
        sync a 1 a=1             -> Stable 1 a a=1
        join b                   -> Preparing 1 a a=1 b+
        late 1                   -> Completing 2 b a b
        sync b 2 a=1 b=2         -> Stable 2 b a=1 b=2
        heartbeat a 1 instance=i -> IllegalGeneration
        rejoin a instance=i      -> Stable 2 b a=1 b=2
    """,
    "an administrator removes a static member": """
        join a instance=i        -> Completing 1 a a
        leave nobody instance=x  -> UnknownMember
        leave nobody             -> UnknownMember
        leave nobody instance=i  -> Empty 2 -
    """,
    "a static id that nobody has": """
        join a                   -> Completing 1 a a
        heartbeat a 1 instance=i -> UnknownMember
    """,
    "commits, phase by phase": """
        commit nobody            -> : committed by generation -1
        commit a 0               -> IllegalGeneration
        join a                   -> Completing 1 a a
        commit a 1               -> RebalanceInProgress
        commit nobody            -> UnknownMember
        sync a 1 a=1             -> Stable 1 a a=1
        commit a 1               -> : committed by generation 1
        commit a 0               -> IllegalGeneration
        commit a -1              -> IllegalGeneration
        commit b 1               -> UnknownMember
        commit nobody            -> UnknownMember
        commit nobody 1          -> UnknownMember
        join b                   -> Preparing 1 a a=1 b+
        commit a 1               -> : committed by generation 1
        rejoin a                 -> Completing 2 a a b
        commit a 1               -> IllegalGeneration
        leave a                  -> Preparing 2 b b
        leave b                  -> Empty 3 -
        commit nobody            -> : committed by generation -1
        commit b 2               -> UnknownMember
        commit b 3               -> UnknownMember
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_group_lives_as_in_kafka(name: str) -> None:
    play(SCRIPTS[name])


@pytest.mark.parametrize("group_id", ["", "x" * 250, None])
def test_a_group_id_that_no_group_may_have(group_id: str) -> None:
    with pytest.raises(InvalidGroupError, match="1 to 249"):
        join(GroupView(), group_id, member("a"), rejoins=False, now_ms=NOW_MS)


def test_the_longest_group_id() -> None:
    assert join(GroupView(), "x" * 249, member("a"), rejoins=False, now_ms=NOW_MS).response.members


def test_a_group_that_becomes_empty_says_since_when() -> None:
    group = join(GroupView(), GROUP, member("a"), rejoins=False, now_ms=NOW_MS).response
    assert group.empty_since_ms is None
    group = leave(GroupView(group), GROUP, "a", now_ms=2_000).response
    assert group.empty_since_ms == 2_000
    assert join(GroupView(group), GROUP, member("a"), rejoins=False, now_ms=NOW_MS).response.empty_since_ms is None


@pytest.mark.parametrize(("kind", "disturbs"), [("consumer", False), ("connect", True)])
def test_what_is_no_subscription_is_compared_by_its_bytes(kind: str, disturbs: bool) -> None:
    one, other = member("a", instance="i"), member("b", instance="i")
    ((name, data),) = one.protocols
    other = replace(other, protocols=((name, data + b"more"),))
    group = join(GroupView(), GROUP, one, rejoins=False, now_ms=NOW_MS, protocol_type=kind).response
    stable = sync(GroupView(group), GROUP, "a", 1, assignments={"a": b"1"}).group
    after = join(GroupView(stable), GROUP, other, rejoins=False, now_ms=NOW_MS, protocol_type=kind).response
    assert (after.phase is not GroupPhase.STABLE) == disturbs


def test_a_group_is_of_one_type() -> None:
    group = join(GroupView(), GROUP, member("a"), rejoins=False, now_ms=NOW_MS, protocol_type="connect").response
    with pytest.raises(InconsistentProtocolError, match="'connect'"):
        join(GroupView(group), GROUP, member("b"), rejoins=False, now_ms=NOW_MS)
    for protocols, kind in (((), "consumer"), (member("a").protocols, "")):
        with pytest.raises(InconsistentProtocolError, match="one of each"):
            join(
                GroupView(), GROUP, replace(member("a"), protocols=protocols), rejoins=False, now_ms=NOW_MS,
                protocol_type=kind,
            )  # fmt: skip
