"""AIOConsumer: callbacks in the loop that await its methods, calls that are cancelled, and how it ends."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.consumers import PATIENCE_S, at, fill, text
from support.waiting import eventually_async

from tidelog.aio import AIOConsumer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.message import Message
from tidelog.clients.values.partitions import TopicPartition
from tidelog.log.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path)) as opened:
        opened.create_topic("t", partitions=1)
        yield opened


def conf(lake: Lake, **more: Any) -> dict[str, Any]:
    quick = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 200, "auto.offset.reset": "earliest"}
    return {"lake": lake, "group.id": "g", **quick, **more}


def with_consumer(lake: Lake, test: Callable[[AIOConsumer], Awaitable[None]], **more: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(2 * PATIENCE_S), AIOConsumer(conf(lake, **more)) as consumer:
            await test(consumer)

    asyncio.run(main())


def test_records_are_polled_and_committed(lake: Lake) -> None:
    fill(lake, "t", "a", "b", "c")

    async def test(consumer: AIOConsumer) -> None:
        await consumer.subscribe(["t"])
        first = await consumer.poll(20)
        assert first is not None
        rest = await consumer.consume(num_messages=2, timeout=20)
        assert [text(m) for m in (first, *rest)] == ["a", "b", "c"]
        assert await consumer.poll(timeout=0) is None
        assert await consumer.consume(5, 0) == []
        (committed,) = await consumer.commit(message=first, asynchronous=False) or []
        assert (committed.topic, committed.partition, committed.offset) == ("t", 0, 1)
        assert await consumer.get_watermark_offsets(at()) == (0, 3)
        assert [p.offset for p in await consumer.position(await consumer.assignment())] == [3]
        assert (await consumer.consumer_group_metadata()).group_id == "g"

    with_consumer(lake, test)


def test_callbacks_run_in_the_loop_and_may_await_the_consumers_methods(lake: Lake) -> None:
    fill(lake, "t", "a", "b", "c")
    loop_thread = threading.current_thread()
    told: list[Any] = []
    committed = asyncio.Event()

    async def on_assign(consumer: AIOConsumer, partitions: list[TopicPartition]) -> None:
        assert threading.current_thread() is loop_thread
        await consumer.incremental_assign([at(1)])
        await consumer.pause(partitions)
        told.append(("assigned", consumer, [p.partition for p in partitions]))
        await consumer.resume(partitions)

    async def on_revoke(consumer: AIOConsumer, partitions: list[TopicPartition]) -> None:
        await consumer.commit(asynchronous=False)
        told.append(("revoked", consumer, [p.partition for p in partitions]))

    def on_commit(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        assert threading.current_thread() is loop_thread
        told.append(("committed", error, [p.offset for p in partitions]))
        committed.set()

    async def test(consumer: AIOConsumer) -> None:
        await consumer.subscribe(["t"], on_assign=on_assign, on_revoke=on_revoke)
        message = await consumer.poll(20)
        assert message is not None
        assert text(message) == "b"
        await consumer.commit()
        while not committed.is_set():
            await consumer.poll(0.01)
        await consumer.unsubscribe()
        assert told[0] == ("assigned", consumer, [0])
        assert ("committed", None, [2]) in told
        assert told[-1] == ("revoked", consumer, [0])

    more = {"partition.assignment.strategy": "cooperative-sticky", "enable.auto.commit": False, "on_commit": on_commit}
    with_consumer(lake, test, **more)


def test_what_a_callback_raises_is_raised_by_the_call(lake: Lake) -> None:
    async def on_assign(*_: Any) -> None:
        raise ValueError("no")

    async def test(consumer: AIOConsumer) -> None:
        await consumer.subscribe(["t"], on_assign)
        with pytest.raises(ValueError, match="no"):
            await consumer.poll(20)
        with pytest.raises(TypeError, match="on_lost expects a callable"):
            await consumer.subscribe(["t"], on_lost=7)  # type: ignore[arg-type]

    with_consumer(lake, test)


def test_a_call_that_is_cancelled_waits_no_longer(lake: Lake) -> None:
    async def test(consumer: AIOConsumer) -> None:
        await consumer.assign([at(0)])
        for wait in (consumer.poll, consumer.consume):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(wait(), 0.05)
            await eventually_async(lambda: consumer._leaving is None, "the thread is back, though it had no limit")
        fill(lake, "t", "a")
        message = await consumer.poll(20)
        assert message is not None
        assert text(message) == "a"

    with_consumer(lake, test)


@pytest.mark.parametrize("stores", [True, False])
def test_what_a_cancelled_call_took_comes_again(lake: Lake, stores: bool) -> None:
    fill(lake, "t", "a", "b", "c", "d")
    started, go_on = threading.Event(), threading.Event()

    async def test(consumer: AIOConsumer) -> None:
        await consumer.assign([at(0)])
        first = await consumer.poll(20)
        assert first is not None
        take = consumer._client.consume

        def slow(*_: Any) -> list[Message]:
            started.set()
            go_on.wait(20)
            return take(2, 20)  # as if it had taken them just when its caller left

        consumer._client.consume = slow  # type: ignore[method-assign]
        reading = asyncio.ensure_future(consumer.consume(2))
        await eventually_async(started.is_set, "the call starts")
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        go_on.set()
        consumer._client.consume = take  # type: ignore[method-assign]
        await eventually_async(lambda: consumer._leaving is None, "the call ends")
        if stores:  # nor is it committed
            assert [p.offset for p in await consumer.commit(asynchronous=False) or []] == [1]
        assert [text(m) for m in await consumer.consume(3, 20)] == ["b", "c", "d"]
        await consumer.seek(at(0))
        assert [text(m) for m in await consumer.consume(1, 20)] == ["a"]

    with_consumer(lake, test, **{"enable.auto.offset.store": stores, "enable.auto.commit": False})


def test_an_end_of_a_partition_that_a_cancelled_call_took_comes_again(lake: Lake) -> None:
    started, go_on = threading.Event(), threading.Event()

    async def test(consumer: AIOConsumer) -> None:
        await consumer.assign([at(0)])
        take = consumer._client.poll

        def slow(_: Any) -> Message | None:
            started.set()
            go_on.wait(20)
            return take(20)

        consumer._client.poll = slow  # type: ignore[method-assign]
        reading = asyncio.ensure_future(consumer.poll())
        await eventually_async(started.is_set, "the call starts")
        reading.cancel()
        await asyncio.wait([reading])  # its caller is gone, before the next one asks
        go_on.set()
        consumer._client.poll = take  # type: ignore[method-assign]
        event = await consumer.poll(20)
        assert event is not None
        assert text(event) == "_PARTITION_EOF"

    with_consumer(lake, test, **{"enable.partition.eof": True})


def test_a_closed_consumer_says_so(lake: Lake) -> None:
    async def test(consumer: AIOConsumer) -> None:
        waiting = asyncio.ensure_future(consumer.poll())
        await consumer.assign([at(0)])
        await consumer.close()
        with pytest.raises(RuntimeError, match="Consumer closed"):
            await waiting
        with pytest.raises(RuntimeError):
            await consumer.poll()

    async def main() -> None:
        consumer = AIOConsumer(conf(lake), max_workers=2)
        await test(consumer)

    asyncio.run(main())


def test_what_it_refuses(lake: Lake) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="max_workers"):
            AIOConsumer(conf(lake), max_workers=0)
        with pytest.raises(KafkaException, match="misspelt"):
            AIOConsumer(conf(lake, misspelt=1))

    asyncio.run(main())
