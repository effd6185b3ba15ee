"""An append that counts only where the topic ends as its writer has read it."""

from typing import Final

import pyarrow as pa

from tidelog.log.appends.joint import JointAppend
from tidelog.log.appends.staged import StagedAppend
from tidelog.log.base.errors import OutcomeUnknownError, RequestForgottenError
from tidelog.log.rules.appends import Ranges

# How often an append without an answer is asked for again before the caller hears of it.
_ATTEMPTS: Final = 3


def append_at(joint: JointAppend, table: pa.Table, end: int) -> Ranges:
    """Append records if the topic's one partition still ends at `end`; they survive a power loss on return.

    `table` as of `StagedAppend`. Raises `HeadMovedError`, and `OutcomeUnknownError` where the records may be there:
    read, and decide again.
    """
    append = StagedAppend(joint, table, only_at=end)
    for left in reversed(range(_ATTEMPTS)):
        try:
            return append.attempt()
        except OutcomeUnknownError:
            if not left:
                raise
        except RequestForgottenError as e:
            raise OutcomeUnknownError(f"{e} The records may be there. Read the topic to see.", request_id="") from e
    raise AssertionError("the last attempt returns or raises")
