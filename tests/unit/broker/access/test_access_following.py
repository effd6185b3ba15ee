"""A broker follows access: by the watch, by looks where the watch is silent, and at once what it changed itself."""

import asyncio
import logging
import threading

import pytest
from support.waiting import eventually_async

from tidelog.access.access_log import AccessLog
from tidelog.access.audit import Audit
from tidelog.access.model import Acl, AclOperation, AclPattern, AclPermission, AclResource
from tidelog.access.state import AccessState
from tidelog.broker.access import following
from tidelog.broker.access.following import AccessFollower
from tidelog.broker.base.access import BrokerAccess
from tidelog.broker.base.calls import Peer
from tidelog.log.base.clock import SystemClock
from tidelog.log.base.errors import LakeNotFoundError, StorageUnavailableError
from tidelog.log.follow import tailing
from tidelog.log.follow.tailing import WATCHED_PAUSE_S
from tidelog.log.lake import Lake
from tidelog.log.storage.watching import open_watcher

ALICE = Peer("SASL", "10.0.0.1", "User:alice")


def acl(name: str, permission: AclPermission = AclPermission.DENY) -> Acl:
    return Acl(AclResource.TOPIC, AclPattern.LITERAL, name, "User:alice", "*", AclOperation.READ, permission)


def may_read(access: BrokerAccess, name: str) -> bool:
    return access.may(ALICE, AclOperation.READ, AclResource.TOPIC, name)


class Followed:
    """A follower of the lake at a path, in the loop that runs."""

    def __init__(self, path) -> None:
        self.log = AccessLog(Lake(path))
        self.access = BrokerAccess(frozenset(), Audit(SystemClock()), everyone=True)
        self.follower = AccessFollower(self.log, self.access, SystemClock(), asyncio.to_thread)

    async def __aenter__(self) -> "Followed":
        await self.follower.start()
        return self

    async def __aexit__(self, *_) -> None:
        await self.follower.close()


def test_what_is_there_is_in_force_before_the_first_client(tmp_path):
    AccessLog(Lake(tmp_path)).add_acls([acl("secret")])

    async def run() -> None:
        async with Followed(tmp_path) as followed:
            assert not may_read(followed.access, "secret")

    asyncio.run(run())


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

    async def run() -> None:
        async with Followed(tmp_path) as followed:
            for n in range(3):
                await asyncio.to_thread(other.add_acls, [acl(f"t{n}")])
                await eventually_async(lambda n=n: not may_read(followed.access, f"t{n}"), f"t{n} is denied")
            await asyncio.to_thread(other.add_acls, [acl("last", AclPermission.ALLOW)])
            await eventually_async(lambda: len(followed.access.state.acls) == 5, "the last one is known")

    asyncio.run(run())


def test_a_distant_store_is_looked_at_twice_a_second_and_not_more(tmp_path, monkeypatch):
    added = []
    monkeypatch.setattr(tailing.Tailing, "add", lambda _, log: added.append(log))

    async def run(address) -> None:
        other = AccessLog(Lake(address))
        async with Followed(address) as followed:
            await asyncio.to_thread(other.add_acls, [acl("a")])
            await eventually_async(lambda: not may_read(followed.access, "a"), "it is in force")

    asyncio.run(run("memory://followed-from-afar"))
    assert added == []
    asyncio.run(run(tmp_path))
    assert added == ["__access"]


def test_a_silent_bell_is_not_waited_for():
    # In force within a second, at two looks a second; a watch that is silent would be looked past after seconds only.
    assert following.LOOK_EVERY_S <= 0.5 < WATCHED_PAUSE_S


def test_the_thread_looks_as_often_as_that_without_a_sign(tmp_path, monkeypatch):
    asked = []
    looked = threading.Event()

    def wait(_, timeout_s):
        asked.append(timeout_s)
        looked.wait(0.001)
        return set()

    monkeypatch.setattr(tailing.Tailing, "wait", wait)
    other = AccessLog(Lake(tmp_path))

    async def run() -> None:
        async with Followed(tmp_path) as followed:
            await asyncio.to_thread(other.add_acls, [acl("a")])
            await eventually_async(lambda: not may_read(followed.access, "a"), "seen by a look without a sign")
            looked.set()

    asyncio.run(run())
    assert set(asked) == {following.LOOK_EVERY_S}


def test_a_broker_sees_at_once_what_it_changed(tmp_path, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(tailing.Tailing, "wait", lambda *_: ended.wait() and set())

    async def run() -> None:
        followed = Followed(tmp_path)
        async with followed:
            followed.log.add_acls([acl("a")])
            assert may_read(followed.access, "a")
            await followed.follower.look_now()
            assert not may_read(followed.access, "a")
            ended.set()

    asyncio.run(run())


def test_an_older_look_that_comes_in_late_changes_nothing(tmp_path):
    async def run() -> None:
        async with Followed(tmp_path) as followed:
            followed.log.add_acls([acl("a")])
            await followed.follower.look_now()
            followed.follower._take(0, AccessState())
            assert not may_read(followed.access, "a")

    asyncio.run(run())


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

    async def run() -> None:
        async with Followed(tmp_path) as followed:
            away.set()
            await eventually_async(lambda: len(tries) > 3, "it tries on")
            assert not may_read(followed.access, "a")
            other.add_acls([acl("b")])
            away.clear()
            await eventually_async(lambda: not may_read(followed.access, "b"), "followed again")

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert len([one for one in caplog.records if "Access can't be followed" in one.message]) == 1


def test_a_broker_does_not_begin_where_access_is_not_known(tmp_path):
    Lake(tmp_path / "lake").alter_config({"access.root": str(tmp_path / "nowhere")})

    async def run() -> None:
        followed = Followed(tmp_path / "lake")
        with pytest.raises(LakeNotFoundError, match="what clients may do is not known"):
            await followed.follower.start()
        await followed.follower.close()

    asyncio.run(run())


def test_no_error_ends_the_thread(tmp_path, monkeypatch, caplog):
    other, seen, faults = (
        AccessLog(Lake(tmp_path)),
        AccessLog.seen,
        [ValueError("a"), RecursionError("b"), KeyError("c")],
    )
    other.add_acls([acl("a")])
    begun = threading.Event()

    def failing(self):
        if begun.is_set() and faults:
            raise faults.pop()
        return seen(self)

    monkeypatch.setattr(AccessLog, "seen", failing)
    monkeypatch.setattr(following, "LOOK_EVERY_S", 0.01)

    async def run() -> None:
        async with Followed(tmp_path) as followed:
            begun.set()
            await eventually_async(lambda: not faults, "it fails")
            other.add_acls([acl("b")])
            await eventually_async(lambda: not may_read(followed.access, "b"), "followed again")

    asyncio.run(run())
    assert "this is a bug" in caplog.text
