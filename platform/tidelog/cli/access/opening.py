"""The log of access of the lake that a command works on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidelog.commands.options import Session

if TYPE_CHECKING:
    from tidelog.access.access_log import AccessLog


@contextmanager
def access_log(call: Session) -> "Iterator[AccessLog]":
    """The log, until the end of the block. Raises as opening the lake does, and `UsageProblemError`."""
    from tidelog.access.access_log import AccessLog

    with call.open_lake() as lake:
        lake.require_lake()
        log = AccessLog(lake)
        try:
            yield log
        finally:
            log.close()
