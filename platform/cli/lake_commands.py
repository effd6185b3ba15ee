"""`tidelog lake …`: describe, alter."""

from typing import Annotated

import typer

from tidelog.cli.topic.commands import ConfigChanges
from tidelog.commands import views
from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, print_json, say

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


@command(lakes, "alter", example="tidelog lake alter --config auto.create.topics.enable=false")
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
