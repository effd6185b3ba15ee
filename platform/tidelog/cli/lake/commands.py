"""`tidelog lake describe|alter`, and what keeps a lake small and clean: `tidelog maintain`, `tidelog forget`."""

import os
import sys
from typing import Annotated

import typer

from tidelog.commands import views
from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.forget_options import ForgetOptions
from tidelog.commands.maintain_options import MaintainOptions
from tidelog.commands.options import ConfigChanges, Session
from tidelog.commands.terminal import console, print_json, say

# Unix's scale from 0 to 19: producers and readers on this machine come first.
NICENESS = 10


lakes = family("Show and change a lake's configuration, the defaults of its topics.")


@command(lakes, "describe", example="tidelog lake describe --all")
def describe(
    call: Session,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every configuration key in force, its source and its meaning.")
    ] = False,
) -> None:
    """Show a lake's address, the version of its format, the number of its topics, and its configuration."""
    # The log, which a help text need not wait for.
    from tidelog.log.delta.disk_format import FORMAT_VERSION

    with call.open_lake() as opened:
        uri, config, count = opened.uri, opened.config(), len(opened.topics())
    if call.as_json:
        shown = {"uri": uri, "format": FORMAT_VERSION, "topics": count, "config": config.overrides}
        print_json(shown | ({"settings": views.settings_json(config.describe())} if everything else {}))
        return
    out = console()
    say(f"{uri}  format {FORMAT_VERSION}, {views.counted(count, 'topic')}")
    if everything or config.overrides:
        out.print()
        out.print(views.all_settings(config.describe()) if everything else views.settings(config.overrides))
    else:
        say("Its configuration is all defaults; --all shows them.")


@command(lakes, "alter", example="tidelog lake alter --config auto.create.topics.enable=false", changes=True)
def alter(
    call: Session,
    config: ConfigChanges,
) -> None:
    """Change a lake's configuration."""
    changes = config.by_key()
    if not changes:
        raise UsageProblemError("Nothing to change: give --config or --delete-config.")
    with call.open_lake() as opened:
        changed = opened.alter_config(changes)
        uri = opened.uri
    if call.as_json:
        print_json({"uri": uri, "config": changed.overrides})
        return
    own = ", ".join(f"{k}={v}" for k, v in changed.overrides.items()) or "all defaults"
    say(f"Altered lake {uri}: {own}.")


def maintain(call: Session, asked: MaintainOptions) -> None:
    """Keep a lake small and fast: drop what has expired, compact, merge small segments, delete unneeded files.

    Safe to run twice at once and to kill anywhere. What fails is named, the rest goes on, and the exit code is 1; that
    another run was faster is reported, and is no failure. It works in this process, for small lakes; large ones take
    the jobs of the same name on Spark.
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
