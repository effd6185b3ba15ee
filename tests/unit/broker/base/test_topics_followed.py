"""A broker's topics are followed by one thread: a fault at one of them leaves the others, and it, followed."""

import asyncio

from support.waiting import eventually_async

from tidelog.broker.base.batch_cache import BatchCache
from tidelog.broker.base.topics import BrokerTopics
from tidelog.log.follow.cursor import FollowedLog
from tidelog.log.lake import Lake


async def grown(followed, topic):
    """The follower sees what is appended."""
    before = followed.state.version
    topic.append([{"value": b"2"}])
    await eventually_async(lambda: followed.state.version > before, f"{followed.name} is followed")


def test_no_error_ends_the_thread_that_follows_topics(tmp_path, monkeypatch, caplog):
    lake, refresh, faults = Lake(tmp_path, create=True), FollowedLog.refresh, []
    for name in ("a", "b"):
        lake.create_topic(name, 1)

    def failing(self):
        if faults and self.name == "a":
            raise faults.pop()
        return refresh(self)

    async def run() -> None:
        topics = BrokerTopics(lake, asyncio.to_thread, BatchCache(1 << 20))
        try:
            found = {name: await topics.get(name) for name in ("a", "b")}
            monkeypatch.setattr(FollowedLog, "refresh", failing)
            faults.append(AttributeError("a fault in the program"))
            lake.topic("a").append([{"value": b"1"}])
            await eventually_async(lambda: not faults, "it fails")
            for name in ("b", "a"):
                await grown(found[name], lake.topic(name))
        finally:
            await asyncio.to_thread(topics.close)

    asyncio.run(run())
    assert "Following topics failed, and goes on: this is a bug" in caplog.text


def test_names_that_no_topic_has_leave_nothing_behind(tmp_path):
    lake = Lake(tmp_path, create=True)

    async def run() -> None:
        topics = BrokerTopics(lake, asyncio.to_thread, BatchCache(1 << 20))
        try:
            for n in range(20):
                assert await topics.get(f"t{n}") is None
            assert len(lake._logs) == 0
            handle = lake.topic("t3")
            assert await topics.get("t3") is None
            lake.create_topic("t3", 1)  # a handle from before sees it
            assert handle.state().exists
            found = await topics.get("t3")
            assert found.state.partitions == 1
            await grown(found, handle)
            await grown(found, lake.topic("t3"))
            lake.delete_topic("t3")
            assert await topics.get("t3") is None or not found.state.exists
        finally:
            await asyncio.to_thread(topics.close)

    asyncio.run(run())
