"""`tidelog maintain` and `tidelog forget`, which read and write a lake's segments in this process."""

import os
import sys

from tidelog.commands.forget_options import ForgetOptions
from tidelog.commands.maintain_options import MaintainOptions
from tidelog.commands.options import Session

# Unix's scale from 0 to 19: producers and readers on this machine come first.
NICENESS = 10


def maintain(call: Session, asked: MaintainOptions) -> None:
    """Keep a lake small and fast: drop what has expired, compact, merge small segments, delete files nobody needs.

    Safe to run twice at once and to kill anywhere. What fails is named, the rest goes on, and the exit code is 1; that
    another run was faster is told, and is no failure. It works in this process, for small lakes; large ones take the
    jobs of the same name on Spark.
    """
    _give_way()
    # Arrow, the groups and the scheduler: heavy, and not needed for --help.
    from tidelog.commands.maintain_run import maintain_lake

    maintain_lake(call, asked)


def _give_way() -> None:
    """Take a lower priority, in a process that was started for this; another program that calls it keeps its own."""
    if "maintain" in sys.argv[1:] and hasattr(os, "nice"):
        os.nice(NICENESS)


def forget(call: Session, asked: ForgetOptions) -> None:
    """Remove every record of given keys from topics, and their bytes from storage; other offsets stay as they are.

    Says which files went, and which still wait: versions that time travel reaches name them, or a running job needs
    them. Then the exit code is 4, until this or 'tidelog maintain' has deleted them. Runs while others write.
    """
    # Arrow and the log: heavy, and not needed for --help.
    from tidelog.commands.forget_run import forget_keys

    forget_keys(call, asked)
