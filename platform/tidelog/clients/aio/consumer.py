"""AIOConsumer: a consumer for asyncio, in the shape of `confluent_kafka.aio.AIOConsumer`."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from tidelog.clients.aio.calls import AsyncClient, in_thread
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.consumer.polling import Deadline
from tidelog.clients.values.message import Message


class AIOConsumer(AsyncClient):
    """A `Consumer` whose methods are coroutines. Make it in a coroutine, close it at the end.

    Callbacks of the configuration and of `subscribe` may be coroutine functions; they run in the loop while a call
    that serves them waits, get this consumer, and may await its methods. A `poll` or `consume` that is cancelled
    (`asyncio.wait_for`, a task's end) loses no record: the next call gets what it had taken. Use one at a time of
    them. `max_workers`, `executor`: where the calls run, see `AsyncClient`.
    """

    def __init__(
        self, consumer_conf: Mapping[str, Any], max_workers: int = 100, executor: Executor | None = None
    ) -> None:
        super().__init__(max_workers, executor)
        self._client = Consumer(self._with_callbacks(consumer_conf))
        self._leaving: asyncio.Future[Any] | None = None

    async def close(self) -> None:
        """Commit what is stored (`enable.auto.commit`), leave the group, and stop. Closing again does nothing."""
        await self._in_thread(self._client.close)
        await self._shut()

    # --- reading -------------------------------------------------------------------------------------------

    async def poll(self, timeout: float | None = -1) -> Message | None:
        """The next message, or an error event; None after `timeout` seconds (None or below 0: without end)."""
        found: Message | None = await self._read(self._client.poll, timeout)
        return found

    async def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """The next messages and error events, as `Consumer.consume` gives them: the faster way to read many."""
        found: list[Message] = await self._read(lambda until: self._client.consume(num_messages, until), timeout)
        return found

    async def _read(self, read: Callable[[Any], Any], timeout: float | None) -> Any:
        until = self._client._polling.deadline(timeout)
        while self._leaving is not None:  # or it would take what comes before what that one gives back
            await asyncio.wait([self._leaving])
        reading = self._in_thread(read, until)
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            self._leave(reading, until)
            raise

    def _leave(self, reading: "asyncio.Future[Any]", until: Deadline) -> None:
        """Have a read end whose caller has gone, and give back what it found."""

        def ended(_: object) -> None:
            self._leaving = None
            if not reading.cancelled():
                found = reading.result()  # or the error: the loop's handler reports it
                self._client._polling.give_back(found if isinstance(found, list) else [found] if found else [])

        self._leaving = reading
        reading.add_done_callback(ended)
        self._client._polling.hurry(until)

    # --- the rest ------------------------------------------------------------------------------------------

    async def subscribe(
        self,
        topics: list[str],
        on_assign: Callable[..., Any] | None = None,
        on_revoke: Callable[..., Any] | None = None,
        on_lost: Callable[..., Any] | None = None,
    ) -> None:
        """Share these topics with the group's other members; the callbacks get this consumer and the partitions."""
        await self._in_thread(self._client.subscribe, topics, *map(self._with_self, (on_assign, on_revoke, on_lost)))

    def _with_self(self, callback: Callable[..., Any] | None) -> Callable[..., Any] | None:
        if not callable(callback):
            return callback  # None, or what the consumer refuses
        in_loop = self._in_loop(callback)
        return lambda _, partitions: in_loop(self, partitions)

    assign = in_thread(Consumer.assign)
    assignment = in_thread(Consumer.assignment)
    cluster_id = in_thread(Consumer.cluster_id)
    commit = in_thread(Consumer.commit)
    committed = in_thread(Consumer.committed)
    consumer_group_metadata = in_thread(Consumer.consumer_group_metadata)
    get_watermark_offsets = in_thread(Consumer.get_watermark_offsets)
    incremental_assign = in_thread(Consumer.incremental_assign)
    incremental_unassign = in_thread(Consumer.incremental_unassign)
    list_topics = in_thread(Consumer.list_topics)
    memberid = in_thread(Consumer.memberid)
    offsets_for_times = in_thread(Consumer.offsets_for_times)
    pause = in_thread(Consumer.pause)
    position = in_thread(Consumer.position)
    resume = in_thread(Consumer.resume)
    seek = in_thread(Consumer.seek)
    set_sasl_credentials = in_thread(Consumer.set_sasl_credentials)
    store_offsets = in_thread(Consumer.store_offsets)
    unassign = in_thread(Consumer.unassign)
    unsubscribe = in_thread(Consumer.unsubscribe)
