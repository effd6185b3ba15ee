"""`tidelog lake …`: describe, alter."""

from typing import Annotated

import typer

from tidelog.cli.topic.commands import Config, changes_of
from tidelog.commands import views
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import DebugOption, FormatOption, LakeOption, StoreOption, remember, session
from tidelog.commands.terminal import console, print_json, say

lakes = typer.Typer(
    callback=remember, no_args_is_help=True, help="Show and change a lake's configuration, the defaults of its topics."
)


@lakes.command("describe", epilog="Example: tidelog lake describe --all")
def describe(
    context: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every configuration key in force, its source and its meaning.")
    ] = False,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Show a lake's address, the version of its format, the number of its topics, and its configuration."""
    call = session(context, lake, output, debug, store)
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


@lakes.command("alter", epilog="Example: tidelog lake alter --config auto.create.topics.enable=false")
def alter(
    context: typer.Context,
    config: Config,
    delete_config: Annotated[
        list[str],
        typer.Option(
            "--delete-config",
            metavar="KEY",
            help="Reset a key to its default. Repeatable.",
            default_factory=list,
            show_default=False,
        ),
    ],
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Change a lake's configuration."""
    call = session(context, lake, output, debug, store)
    changes = changes_of(config, delete_config)
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
