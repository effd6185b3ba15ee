"""AIOProducer: futures of deliveries, back pressure, transactions, and how it ends."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.logs import read
from support.producers import live_lake
from support.waiting import eventually_async

from tidelog.aio import AIOProducer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.message import Message
from tidelog.log.lake import Lake


def lake_with(partitions: int = 1) -> Lake:
    lake, _ = live_lake()
    lake.create_topic("t", partitions)
    return lake


def code_of(future: "asyncio.Future[Message]") -> Any:
    error = future.exception()
    assert isinstance(error, KafkaException)
    return error.args[0].code()


def test_a_future_gives_the_delivered_message():
    lake = lake_with(2)

    async def main() -> Message:
        async with AIOProducer({"lake": lake}) as producer:
            return await (await producer.produce("t", "v", key="k", partition=1, timestamp=1_700_000_000_123))

    message = asyncio.run(main())
    assert (message.topic(), message.partition(), message.offset()) == ("t", 1, 0)
    assert (message.key(), message.value(), message.timestamp()) == (b"k", b"v", (1, 1_700_000_000_123))


def test_deliveries_come_without_poll_and_flush_settles_all_of_them():
    lake = lake_with()

    async def main() -> None:
        async with AIOProducer({"lake": lake, "linger.ms": 60_000, "batch.num.messages": 3}) as producer:
            first = [await producer.produce("t", str(i)) for i in range(3)]  # a full batch
            assert [m.offset() for m in await asyncio.gather(*first)] == [0, 1, 2]
            later = [await producer.produce("t", str(i)) for i in range(2)]
            assert (len(producer), bool(producer)) == (2, True)
            assert await producer.flush() == 0
            assert [future.result().offset() for future in later] == [3, 4]
            assert (len(producer), bool(producer)) == (0, True)
            assert await producer.poll() == 0

    asyncio.run(main())


def test_close_resolves_what_waits_and_nothing_comes_after():
    lake = lake_with()

    async def main() -> None:
        producer = AIOProducer({"lake": lake, "linger.ms": 60_000})
        futures = [await producer.produce("t", str(i), headers={"h": "1"}) for i in range(10)]
        await producer.close()
        assert [future.result().offset() for future in futures] == list(range(10))
        with pytest.raises(RuntimeError):
            await producer.produce("u", "late")

    asyncio.run(main())
    assert len(read(lake, "t")) == 10


def test_a_full_queue_is_waited_for_and_a_record_that_never_fits_is_not():
    lake = lake_with()

    async def main() -> None:
        async with AIOProducer({"lake": lake, "queue.buffering.max.messages": 10, "linger.ms": 0}) as producer:
            futures = [await producer.produce("t", str(i)) for i in range(200)]
            await producer.flush()
            assert [future.result().offset() for future in futures] == list(range(200))
        async with AIOProducer({"lake": lake, "queue.buffering.max.kbytes": 1}) as producer:
            with pytest.raises(BufferError):
                await producer.produce("t", b"x" * 2_000)

    asyncio.run(main())


def test_a_record_that_fails_raises_from_its_future_and_from_no_other():
    lake = lake_with()
    reported = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        conf = {"lake": lake, "delivery.report.only.error": True, "linger.ms": 60_000}
        async with AIOProducer(conf, batch_size=1, buffer_timeout=0) as producer:
            wrong = await producer.produce("t", "a", partition=7)
            cancelled = await producer.produce("t", "b")
            cancelled.cancel()
            right = await producer.produce("t", "c")
            await producer.flush()
            assert code_of(wrong) == KafkaError._UNKNOWN_PARTITION
            assert right.result().value() == b"c"
            waiting = await producer.produce("t", "d")
            await producer.purge()
            await asyncio.wait([waiting])
            assert code_of(waiting) in (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
            with pytest.raises(KafkaException):  # by the call, for a record that can't be
                await producer.produce("t", b"x" * 2_000_000)

    asyncio.run(main())
    assert reported == []


def test_transactions():
    lake = lake_with()

    async def main() -> None:
        async with AIOProducer({"lake": lake, "transactional.id": "x"}, max_workers=2) as producer:
            await producer.init_transactions()
            for text, end in (("kept", producer.commit_transaction), ("dropped", producer.abort_transaction)):
                await producer.begin_transaction()
                future = await producer.produce("t", text)
                await producer.flush()
                assert future.result().value() == text.encode()
                await end()

    asyncio.run(main())
    assert read(lake, "t") == ["kept"]


def test_the_loop_goes_on_while_a_call_waits():
    """A call that blocks does so in a thread, of an executor of the caller's where there is one."""
    lake = lake_with()
    threads = set()

    async def main() -> None:
        with ThreadPoolExecutor(2, "mine") as executor:
            producer = AIOProducer({"lake": lake}, executor=executor)
            release = threading.Event()

            def blocking(topic: str | None = None, timeout: float = -1) -> Any:
                threads.add(threading.current_thread().name.partition("_")[0])
                return release.wait(20) and topic

            producer._client.list_topics = blocking  # type: ignore[method-assign]
            asking = asyncio.ensure_future(producer.list_topics(topic="t", timeout=5))
            await eventually_async(lambda: threads, "the call starts")
            release.set()
            assert await asking == "t"
            assert await producer.cluster_id() == lake.uri
            await producer.close()
            assert executor.submit(int).result() == 0  # it stays its owner's

    asyncio.run(main())
    assert threads == {"mine"}
    with pytest.raises(RuntimeError):
        AIOProducer({"lake": lake})
