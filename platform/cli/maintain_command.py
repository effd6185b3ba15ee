"""`tidelog maintain`: retention, compaction, merging and purging of a lake, in this process."""

import os
import sys

import typer

from tidelog.commands.maintain_options import (
    DryRunOption,
    EveryOption,
    NowOption,
    OnlyOption,
    PatternOption,
    TopicsOption,
    wanted,
)
from tidelog.commands.options import DebugOption, FormatOption, LakeOption, StoreOption, session

# Unix's scale from 0 to 19: producers and readers on this machine come first.
NICENESS = 10


def maintain(
    context: typer.Context,
    only: OnlyOption = None,
    topics: TopicsOption = None,
    pattern: PatternOption = None,
    now: NowOption = None,
    dry_run: DryRunOption = False,
    every: EveryOption = None,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Keep a lake small and fast: drop what has expired, compact, merge small segments, delete files nobody needs.

    Safe to run twice at once and to kill anywhere. What fails is named, the rest goes on, and the exit code is 1; that
    another run was faster is told, and is no failure. It works in this process, for small lakes; large ones take the
    jobs of the same name on Spark.
    """
    call = session(context, lake, output, debug, store)
    asked = wanted(only, topics, pattern, now, dry_run, every)
    _give_way()
    with call.open_lake() as opened:
        # Arrow, the groups and the scheduler: heavy, and not needed for --help.
        from tidelog.commands.maintain_run import carry_out

        carry_out(call, opened, asked)


def _give_way() -> None:
    """Take a lower priority, in a process that was started for this; another program that calls it keeps its own."""
    if "maintain" in sys.argv[1:] and hasattr(os, "nice"):
        os.nice(NICENESS)
