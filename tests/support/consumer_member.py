"""A member of a group as a process, which keeps what it read in a file, then commits: `... LAKE FILE`."""

import os
import sys
from contextlib import suppress

from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import KafkaException


def main(lake: str, path: str) -> None:
    """Read topic `t` for ever."""
    kept = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    conf = {
        "lake": lake,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 2_000,
        "heartbeat.interval.ms": 300,
        "max.poll.interval.ms": 10_000,
        "queued.min.messages": 1_000,
    }
    with Consumer(conf) as consumer:
        consumer.subscribe(["t"])
        while True:
            messages = consumer.consume(500, 0.2)
            values = [m.value().decode() for m in messages if m.error() is None]
            if values:
                os.write(kept, ("\n".join(values) + "\n").encode())
                with suppress(KafkaException):  # it lost its place; the next owner reads these again
                    consumer.commit(asynchronous=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
