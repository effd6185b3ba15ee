"""A broker in a thread of the test's process, with a loop of its own, on a free loopback port."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from tidelog.broker.base.settings import BrokerSettings, GroupSettings
from tidelog.broker.broker import Broker
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import ListenerSettings

LISTENER = "PLAINTEXT"
# A new group does not wait for members that may follow: Kafka has it wait 3 s.
GROUPS = GroupSettings(initial_rebalance_delay_ms=0)
_SETTINGS = BrokerSettings({LISTENER: ListenerSettings("127.0.0.1", 0)}, groups=GROUPS)


@contextmanager
def running_broker(
    lake: Lake, make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop, **settings
) -> Iterator[str]:
    """A broker over the lake until the end of the block; its address, as clients take it for bootstrap.servers.

    Of several listeners, the first one's.
    """
    loop = make_loop()
    thread = threading.Thread(target=loop.run_forever, name="broker", daemon=True)
    thread.start()

    async def begin() -> Broker:
        broker = Broker(lake, replace(_SETTINGS, **settings))
        await broker.start()
        return broker

    broker = asyncio.run_coroutine_threadsafe(begin(), loop).result(30)
    try:
        host, port = next(iter(broker.addresses.values()))
        yield f"{host}:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(broker.close(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
