"""What connections cost a broker that say nothing: ten thousand of them."""

import resource
import socket
import struct
import time

import brokers
from figures import Row
from plan import Plan

import tidelog

_SOCKETS = 10_000
_MOST_KIB = 16.0
# Files that this process and the broker have open beside the sockets.
_OTHERS = 200
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)


def run(plan: Plan) -> list[Row]:
    """Memory of the broker before and after; each of the sockets has been answered once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(1_000 if plan.quick else _SOCKETS, hard - _OTHERS)
    folder = plan.work / "broker-idle"
    with tidelog.Lake(str(folder)) as lake:
        lake.create_topic("t", partitions=1)
    sockets: list[socket.socket] = []
    try:
        with brokers.running(folder) as (broker,):
            host, _, port = broker.address.rpartition(":")
            sockets.append(_answered(socket.create_connection((host, int(port)), 30)))
            before = broker.memory_mib
            sockets.extend(_answered(socket.create_connection((host, int(port)), 30)) for _ in range(count))
            kib = (broker.memory_mib - before) * 1024 / count
            began_s, began = broker.processor_s, time.monotonic()
            time.sleep(plan.racing_s)
            share = (broker.processor_s - began_s) / (time.monotonic() - began)
            _answered(sockets[0])
    finally:
        for one in sockets:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return [
        Row(
            f"a broker with {count:,} idle connections: memory of each",
            f"≤ {_MOST_KIB:g} KiB",
            f"{kib:.1f} KiB ({share * 100:.1f} % of a core)",
            kib <= _MOST_KIB,
            {"connections": count, "kib": kib, "cores": share},
        )
    ]


def _answered(connection: socket.socket) -> socket.socket:
    """The connection, once the broker has answered ApiVersions over it."""
    connection.sendall(_API_VERSIONS)
    (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    connection.recv(size, socket.MSG_WAITALL)
    return connection
