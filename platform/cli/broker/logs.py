"""The log of a broker's process: lines on stderr that can be searched, with the broker's id in each."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import gmtime


class BrokerLines(logging.Formatter):
    """Lines such as `2026-11-22T16:05:01.123Z WARNING broker=1 Connection closed: peer=10.0.0.7 listener=…`.

    `broker`: what stands for the broker; its id, once that is known.
    """

    converter = staticmethod(gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s broker=%(broker)s %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.broker = "-"

    def format(self, record: logging.LogRecord) -> str:
        """One line, and those of a traceback."""
        record.broker = self.broker
        return super().format(record)


@contextmanager
def logging_lines() -> Iterator[BrokerLines]:
    """Meanwhile tidelog's log goes to stderr, from INFO on, and nowhere else."""
    lines, handler = BrokerLines(), logging.StreamHandler(sys.stderr)
    handler.setFormatter(lines)
    logger = logging.getLogger("tidelog")
    before = logger.handlers[:], logger.level
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.handlers[:] = before[0]
        logger.setLevel(before[1])
