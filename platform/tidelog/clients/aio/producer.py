"""AIOProducer: a producer for asyncio, in the shape of `confluent_kafka.aio.AIOProducer`."""

import asyncio
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, Final

from tidelog.clients.aio.calls import AsyncClient, in_thread
from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.message import Message
from tidelog.log.group_commit.requests import NO_PARTITION

# A wait for statistics ends with it, or with the producer.
_POLL_S: Final = 1.0

_Delivery = tuple["asyncio.Future[Message]", KafkaError | None, Message]


class AIOProducer(AsyncClient):
    """A `Producer` whose `produce` gives a future of the delivered message, and whose other methods are coroutines.

    Make it in a coroutine, close it at the end. Records go into the producer's own queue at once, where `linger.ms`
    and `batch.num.messages` say how they are batched: `batch_size` and `buffer_timeout`, by which confluent-kafka
    collects records before its queue, change nothing. `max_workers`, `executor`: where blocking calls run; one thread
    serves deliveries while there are some to come.
    """

    def __init__(
        self,
        producer_conf: Mapping[str, Any],
        max_workers: int = 4,
        executor: Executor | None = None,
        batch_size: int = 1000,  # noqa: ARG002
        buffer_timeout: float = 1.0,  # noqa: ARG002
    ) -> None:
        super().__init__(max_workers, executor)
        # Each future needs its report, of a record that was delivered too.
        conf = {**self._with_callbacks(producer_conf), "delivery.report.only.error": False}
        self._client = Producer(conf)
        self._delivered: deque[_Delivery] = deque()
        self._produced = self._reported = 0
        self._news = asyncio.Event()
        self._serving: asyncio.Future[None] | None = None
        self._closing = False
        # Statistics are due while nothing is delivered, too.
        self._always_polls = self._client._shared.traffic is not None
        if self._always_polls:
            self._serve()

    def __len__(self) -> int:
        """How many records wait: to be committed, or for their future to be resolved."""
        return self._produced - self._reported

    def __bool__(self) -> bool:
        """True: a producer with nothing to do is a producer."""
        return True

    async def close(self) -> None:
        """Flush, resolve every future, and end."""
        self._closing = True
        await self._in_thread(self._client.close)
        await self._all_reported(self._produced)
        await self._shut()

    # --- producing -----------------------------------------------------------------------------------------

    async def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int = NO_PARTITION,
        timestamp: int = 0,
        headers: Any = None,
    ) -> "asyncio.Future[Message]":
        """Queue a record, once there is room; the future gives the delivered message, or raises KafkaException.

        Raises as `Producer.produce` does, and BufferError only for a record that an empty queue has no room for.
        """
        reported: asyncio.Future[Message] = self._loop.create_future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            self._delivered.append((reported, error, message))

        while True:
            try:
                self._client.produce(
                    topic, value, key, partition, on_delivery=delivered, timestamp=timestamp, headers=headers
                )
                break
            except BufferError:
                if not len(self):
                    raise
                await self._wait_for_news()
        self._produced += 1
        self._serve()
        return reported

    async def flush(self, timeout: float | None = -1) -> int:
        """Have everything committed without lingering, and every future resolved, in at most `timeout` seconds.

        Returns how many records still wait.
        """
        produced = self._produced
        left = await self._in_thread(self._client.flush, timeout)
        if not left:
            await self._all_reported(produced)
        return left

    async def poll(self, timeout: float | None = 0) -> int:
        """Wait for deliveries at most `timeout` seconds (None, -1: for ever); futures are resolved without it, too.

        Returns how many records were delivered, or failed, meanwhile.
        """
        reported = self._reported
        await self._in_thread(self._client.poll, timeout)
        self._tell()
        return self._reported - reported

    def _serve(self) -> None:
        """Have a thread take deliveries for as long as some are to come."""
        if self._serving is None:
            self._serving = self._in_thread(self._take_deliveries)
            self._serving.add_done_callback(self._served)

    def _served(self, serving: "asyncio.Future[None]") -> None:
        self._serving = None
        self._tell()
        if not serving.cancelled() and (error := serving.exception()) is not None:
            raise error  # to the loop's handler of exceptions
        if len(self._client):  # produced after the thread's last look
            self._serve()

    def _take_deliveries(self) -> None:
        while len(self._client) or (self._always_polls and not self._closing):
            self._client.poll(_POLL_S if self._always_polls else None)
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        """Resolve the futures of the deliveries that were taken."""
        while self._delivered:
            reported, error, message = self._delivered.popleft()
            self._reported += 1
            if reported.done():  # its owner cancelled it
                continue
            if error is None:
                reported.set_result(message)
            else:
                reported.set_exception(KafkaException(error))
        self._news.set()

    async def _all_reported(self, produced: int) -> None:
        """Wait until this number of records' futures are resolved: a thread may be about to report the last ones."""
        self._tell()
        while self._reported < produced:
            await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        self._news.clear()
        await self._news.wait()

    # --- the rest ------------------------------------------------------------------------------------------

    abort_transaction = in_thread(Producer.abort_transaction)
    begin_transaction = in_thread(Producer.begin_transaction)
    cluster_id = in_thread(Producer.cluster_id)
    commit_transaction = in_thread(Producer.commit_transaction)
    init_transactions = in_thread(Producer.init_transactions)
    list_topics = in_thread(Producer.list_topics)
    purge = in_thread(Producer.purge)
    send_offsets_to_transaction = in_thread(Producer.send_offsets_to_transaction)
    set_sasl_credentials = in_thread(Producer.set_sasl_credentials)
