"""Whether brokers that are said to run can be reached: when the last one dies, no other notes that it is gone."""

import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tidelog.cluster.model import BrokerState, RegisteredBroker

_CONNECT_S: Final = 2.0
_AT_ONCE: Final = 16


def silence(broker: RegisteredBroker) -> str:
    """Why no client can connect to a broker that is said to run; "" where one can."""
    why = ""
    for listener in broker.listeners:
        try:
            socket.create_connection((listener.host, listener.port), _CONNECT_S).close()
        except OSError as e:
            why = f"{listener.host}:{listener.port}: {e.strerror or e}"
    return why


def silent_ones(brokers: Iterable[RegisteredBroker]) -> dict[str, str]:
    """{registration: why no client can connect from here} of those that are said to serve and are not reached."""
    asked = [one for one in brokers if one.state is not BrokerState.GONE]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="tidelog-reach") as threads:
        found = zip(asked, threads.map(silence, asked), strict=True)
        return {one.registration: why for one, why in found if why}
