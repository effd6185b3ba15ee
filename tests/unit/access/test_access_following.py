"""Access is followed: by the watch, by looks where the watch is silent or there is none, and where it is asked."""

import logging
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest
from support.logs import memory_lake, open_lake
from support.waiting import eventually

from tidelog.access import following, in_force
from tidelog.access.access_log import AccessLog
from tidelog.access.authorizer import Subject
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.following import LOOK_EVERY_S, AccessFollower
from tidelog.access.in_force import AccessInForce
from tidelog.access.model import Acl, AclFilter, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.quotas import Entity, Quota
from tidelog.access.state import AccessState
from tidelog.log.base.clock import SystemClock
from tidelog.log.base.errors import LakeNotFoundError, StorageUnavailableError
from tidelog.log.follow import tailing
from tidelog.log.follow.tailing import WATCHED_PAUSE_S
from tidelog.log.lake import Lake
from tidelog.log.storage.watching import open_watcher

ALICE = Subject("User:alice", "10.0.0.1")
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY


def acl(name: str, permission: AclPermission = DENY) -> Acl:
    return Acl(AclResource.TOPIC, AclPattern.LITERAL, name, "User:alice", "*", AclOperation.READ, permission)


def may_read(access: AccessInForce, name: str) -> bool:
    return access.verdict(ALICE, AclOperation.READ, AclResource.TOPIC, name).allowed


class Followed:
    """A follower of the lake at a path, by a thread. What no ACL is about is allowed."""

    def __init__(self, path) -> None:
        self.log = AccessLog(Lake(path))
        self.access = AccessInForce(everyone=True)
        self.follower = AccessFollower(self.log, self.access, SystemClock())

    def __enter__(self) -> "Followed":
        self.follower.look_now()
        self.follower.start()
        return self

    def __exit__(self, *_) -> None:
        self.follower.close()

    def denies(self, name: str) -> bool:
        return not may_read(self.access, name)


# --- by a thread -------------------------------------------------------------------------------------------


def test_what_is_there_is_in_force_before_the_first_client(tmp_path):
    AccessLog(Lake(tmp_path)).add_acls([acl("secret")])
    with Followed(tmp_path) as followed:
        assert followed.denies("secret")


@pytest.mark.parametrize("bell", ["rings", "silent", "none"])
def test_what_another_process_changes_is_in_force(tmp_path, monkeypatch, bell):
    if bell == "none":
        monkeypatch.setattr(tailing, "open_watcher", lambda _: None)
    if bell == "silent":

        def deaf(storage):
            watcher = open_watcher(storage)
            monkeypatch.setattr(type(watcher), "changed", lambda _: set())
            return watcher

        monkeypatch.setattr(tailing, "open_watcher", deaf)
    other = AccessLog(Lake(tmp_path))
    other.add_acls([acl("first")])
    with Followed(tmp_path) as followed:
        for n in range(3):
            other.add_acls([acl(f"t{n}")])
            eventually(lambda n=n: followed.denies(f"t{n}"), f"t{n} is denied")
        other.delete_acls([AclFilter(name="t1")])
        eventually(lambda: not followed.denies("t1"), "t1 is denied no more")
        other.add_acls([acl("last", ALLOW)])
        eventually(lambda: len(followed.access.state.acls) == 4, "the last one is known")


def test_a_distant_store_is_looked_at_twice_a_second_and_not_more(tmp_path, monkeypatch):
    added = []
    monkeypatch.setattr(tailing.Tailing, "add", lambda _, log: added.append(log))

    def run(address) -> None:
        other = AccessLog(Lake(address))
        with Followed(address) as followed:
            other.add_acls([acl("a")])
            eventually(lambda: followed.denies("a"), "it is in force")

    run("memory://followed-from-afar")
    assert added == []
    run(tmp_path)
    assert added == ["__access"]


def test_a_silent_bell_is_not_waited_for():
    # In force within a second, at two looks a second; a watch that is silent would be looked past after seconds only.
    assert LOOK_EVERY_S <= 0.5 < WATCHED_PAUSE_S


def test_the_thread_looks_as_often_as_that_without_a_sign(tmp_path, monkeypatch):
    asked = []
    looked = threading.Event()

    def wait(_, timeout_s):
        asked.append(timeout_s)
        looked.wait(0.001)
        return set()

    monkeypatch.setattr(tailing.Tailing, "wait", wait)
    other = AccessLog(Lake(tmp_path))
    with Followed(tmp_path) as followed:
        other.add_acls([acl("a")])
        eventually(lambda: followed.denies("a"), "seen by a look without a sign")
        looked.set()
    assert set(asked) == {LOOK_EVERY_S}


def test_a_process_sees_at_once_what_it_changed(tmp_path, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(tailing.Tailing, "wait", lambda *_: ended.wait() and set())
    with Followed(tmp_path) as followed:
        try:
            followed.log.add_acls([acl("a")])
            assert not followed.denies("a")
            assert followed.follower.look_now()
            assert followed.denies("a")
            assert not followed.follower.look_now()
        finally:
            ended.set()


def test_while_the_store_is_away_what_was_known_holds(tmp_path, monkeypatch, caplog):
    other = AccessLog(Lake(tmp_path))
    other.add_acls([acl("a")])
    seen, away = AccessLog.seen, threading.Event()
    tries = []

    def failing(self):
        if away.is_set():
            tries.append(1)
            raise StorageUnavailableError("The store does not answer. Try again.")
        return seen(self)

    monkeypatch.setattr(AccessLog, "seen", failing)
    monkeypatch.setattr(following, "LOOK_EVERY_S", 0.01)
    with caplog.at_level(logging.WARNING), Followed(tmp_path) as followed:
        away.set()
        eventually(lambda: len(tries) > 3, "it tries on")
        assert followed.denies("a")
        other.add_acls([acl("b")])
        away.clear()
        eventually(lambda: followed.denies("b"), "followed again")
    assert len([one for one in caplog.records if "Access can't be followed" in one.message]) == 1


def test_nothing_is_in_force_where_access_is_not_known(tmp_path):
    Lake(tmp_path / "lake").alter_config({"access.root": str(tmp_path / "nowhere")})
    followed = Followed(tmp_path / "lake")
    with pytest.raises(LakeNotFoundError, match="what clients may do is not known"):
        followed.follower.look_now()
    followed.follower.close()


def test_no_error_ends_the_thread(tmp_path, monkeypatch, caplog):
    other, seen = AccessLog(Lake(tmp_path)), AccessLog.seen
    faults = [ValueError("a"), RecursionError("b"), KeyError("c")]
    other.add_acls([acl("a")])
    begun = threading.Event()

    def failing(self):
        if begun.is_set() and faults:
            raise faults.pop()
        return seen(self)

    monkeypatch.setattr(AccessLog, "seen", failing)
    monkeypatch.setattr(following, "LOOK_EVERY_S", 0.01)
    with Followed(tmp_path) as followed:
        begun.set()
        eventually(lambda: not faults, "it fails")
        other.add_acls([acl("b")])
        eventually(lambda: followed.denies("b"), "followed again")
    assert "this is a bug" in caplog.text


# --- where it is asked, and with mistakes ------------------------------------------------------------------


class Elsewhere:
    """A lake whose access another process changes, and a follower that looks where it is asked."""

    def __init__(self) -> None:
        lake, _, self.clock = memory_lake()
        self.other = AccessLog(open_lake(lake.storage, self.clock))
        self.log = AccessLog(lake)
        self.access = AccessInForce(everyone=False)
        self.follower = AccessFollower(self.log, self.access, self.clock)
        self.follower.look_now()

    def readable(self) -> set[str]:
        """What alice may read of a and b, a second later."""
        self.clock.pass_s(1.0)
        self.follower.look_again()
        return {name for name in "ab" if may_read(self.access, name)}

    @contextmanager
    def seeing(self, seen):
        """Meanwhile a look at the log gives what `seen` does."""
        self.log.seen = seen
        try:
            yield
        finally:
            del self.log.seen


def away():
    raise StorageUnavailableError("The store does not answer. Try again.")


def acls_are_followed():
    world = Elsewhere()
    assert world.readable() == set()
    world.other.add_acls([acl("a", ALLOW), acl("b", ALLOW)])
    assert world.readable() == {"a", "b"}
    world.other.delete_acls([AclFilter(name="a")])
    assert world.readable() == {"b"}
    world.other.add_acls([acl("b", DENY)])
    assert world.readable() == set()
    world.other.delete_acls([AclFilter(permission=DENY)])
    assert world.readable() == {"b"}


def the_rest_is_followed():
    world = Elsewhere()
    alice, rate = Entity("alice"), Quota.PRODUCER_BYTE_RATE
    world.other.upsert_scram("alice", credential(ScramMechanism.SHA_256, "pw", b"salt" * 4))
    world.other.alter_quotas({alice: {rate: 5.0}})
    world.readable()
    assert set(world.access.state.scram) == {("alice", ScramMechanism.SHA_256)}
    assert world.access.state.quotas == {alice: {rate: 5.0}}
    world.other.delete_user("alice")
    world.other.alter_quotas({alice: {rate: None}})
    world.readable()
    assert replace(world.access.state, secret=b"") == AccessState()


def a_look_that_comes_in_late_changes_nothing():
    world = Elsewhere()
    world.other.add_acls([acl("a", ALLOW)])
    late = world.log.seen()
    world.other.delete_acls([AclFilter(name="a")])
    assert world.readable() == set()
    with world.seeing(lambda: late):
        assert world.readable() == set()


def a_store_that_is_away_comes_back():
    world = Elsewhere()
    world.other.add_acls([acl("a", ALLOW)])
    assert world.readable() == {"a"}
    with world.seeing(away):
        assert world.readable() == {"a"}
    world.other.delete_acls([AclFilter(name="a")])
    assert world.readable() == set()


CHECKS = [acls_are_followed, the_rest_is_followed, a_look_that_comes_in_late_changes_nothing,
          a_store_that_is_away_comes_back]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS)
def test_what_is_changed_elsewhere_is_in_force_within_a_second(check):
    check()


take, look_now, look_again = AccessInForce.take, AccessFollower.look_now, AccessFollower.look_again


def misses_deletions_of_acls(monkeypatch):
    def mistaken(self, state):
        take(self, replace(state, acls=state.acls | self.state.acls))

    monkeypatch.setattr(AccessInForce, "take", mistaken)


def misses_deletions_of_users(monkeypatch):
    def mistaken(self, state):
        take(self, replace(state, scram={**self.state.scram, **state.scram}))

    monkeypatch.setattr(AccessInForce, "take", mistaken)


def goes_by_what_was_decided_before(monkeypatch):
    def mistaken(self, state):
        verdicts = self._decides[1]
        take(self, state)
        self._decides = self.authorizer, verdicts

    monkeypatch.setattr(AccessInForce, "take", mistaken)


def goes_by_acls_alone(monkeypatch):
    monkeypatch.setattr(AccessInForce, "take", lambda self, state: state.acls and take(self, state))


def takes_an_older_state(monkeypatch):
    def mistaken(self):
        self._version = -2
        return look_now(self)

    monkeypatch.setattr(AccessFollower, "look_now", mistaken)


def gives_up_where_the_store_is_away(monkeypatch):
    monkeypatch.setattr(AccessFollower, "look_again", lambda self: self._away or look_again(self))


def forgets_what_was_known_where_the_store_is_away(monkeypatch):
    def mistaken(self):
        look_again(self)
        if self._away:
            self._access.take(AccessState())

    monkeypatch.setattr(AccessFollower, "look_again", mistaken)


def looks_too_seldom(monkeypatch):
    monkeypatch.setattr(following, "LOOK_EVERY_S", 1.5)


@pytest.mark.parametrize(
    "mistake",
    [
        misses_deletions_of_acls,
        misses_deletions_of_users,
        goes_by_what_was_decided_before,
        goes_by_acls_alone,
        takes_an_older_state,
        gives_up_where_the_store_is_away,
        forgets_what_was_known_where_the_store_is_away,
        looks_too_seldom,
    ],
)
def test_a_planted_mistake_is_found(mistake, monkeypatch):
    mistake(monkeypatch)
    found = []
    for check in CHECKS:
        try:
            check()
        except AssertionError:
            found.append(check)
    assert found


def test_a_look_is_not_repeated_before_its_time():
    world, looks = Elsewhere(), []
    with world.seeing(lambda: looks.append(1) or (-1, AccessState())):
        for _ in range(3):
            world.follower.look_again()
        assert len(looks) == 0  # `look_now` was just now
        world.clock.pass_s(LOOK_EVERY_S)
        for _ in range(3):
            world.follower.look_again()
    assert len(looks) == 1


def test_decisions_are_kept_until_there_are_too_many(monkeypatch):
    monkeypatch.setattr(in_force, "MOST_VERDICTS", 2)
    access = AccessInForce(everyone=False)
    access.take(AccessState(acls=frozenset({acl("a", ALLOW)})))
    assert [may_read(access, name) for name in ("a", "b", "c", "x" * 300, "a")] == [True, False, False, False, True]
    assert len(access._decides[1]) <= 2
