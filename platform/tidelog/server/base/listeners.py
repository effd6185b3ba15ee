"""Listeners: addresses in words, and the sockets that clients connect to."""

import asyncio
import errno
import socket
from collections.abc import Callable

from tidelog.log.base.errors import TidelogError

# Connections that wait to be accepted: after a broker's death many clients come at once.
BACKLOG = 1024
# (host, port)
Address = tuple[str, int]
_ANY = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound


class ListenerError(TidelogError):
    """An address that a broker, or a listener of metrics, can't listen at."""


def parse_listener(text: str) -> Address:
    """(host, port) of "127.0.0.1:9092", "[::1]:9092" or "PLAINTEXT://host:9092"; port 0 takes a free one.

    Raises `ListenerError`.

    >>> parse_listener("[::1]:9092")
    ('::1', 9092)
    """
    scheme, found, rest = text.rpartition("://")
    if found and scheme.upper() != "PLAINTEXT":
        raise ListenerError(
            f"The listener {text!r} asks for {scheme}, and --listener is for PLAINTEXT only. Put it into a file with"
            " what it needs, as listeners, and give that by --config."
        )
    return parse_address(rest)


def parse_address(text: str) -> Address:
    """(host, port) of "127.0.0.1:9092", "[::1]:9092" or ":9092". Raises `ListenerError`."""
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not port.isdecimal() or int(port) > 65_535 or (":" in bare and bare == host):
        raise ListenerError(
            f"{text!r} is no listener: write HOST:PORT, as in 127.0.0.1:9092 or [::1]:9092, with a port up to 65535."
        )
    return bare or "0.0.0.0", int(port)  # noqa: S104 - as Kafka reads a listener without a host


def shown(address: Address) -> str:
    """The address as clients take it for bootstrap.servers."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def advertised_host(host: str) -> str:
    """The host to name to clients: this machine's own name for one that stands for every interface, as in Kafka."""
    return socket.gethostname() if host in _ANY else host


async def listen(protocol: Callable[[], asyncio.BaseProtocol], address: Address) -> tuple[asyncio.Server, Address]:
    """Have the address; the server, and the address as clients reach it. Raises `ListenerError`.

    No client can connect before `start_serving`: a broker that is not registered answers none.
    """
    host, port = address
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(protocol, host, port, backlog=BACKLOG, start_serving=False)
    except OSError as e:
        raise refusal(address, e) from e
    return server, (advertised_host(host), server.sockets[0].getsockname()[1])


def refusal(address: Address, error: OSError) -> ListenerError:
    """The system's refusal of an address, in words."""
    return ListenerError(f"The process can't listen at {shown(address)}: {_why(error, address[1])}")


def _why(error: OSError, port: int) -> str:
    if isinstance(error, socket.gaierror):
        return "no machine has that name. Give an address of this machine, or 0.0.0.0 for all of them."
    if error.errno == errno.EADDRINUSE:
        return f"another process has port {port}. Stop it, or give another port; port 0 takes a free one."
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no interface of that address. 'ip address' lists them; 0.0.0.0 takes all."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"the system lets no ordinary user have port {port}. Give one from 1024 on."
    return f"{error.strerror or error}."
