"""Options that every command takes, before or after its name, the session that they make, and other common ones.

Nothing here loads the log: `tidelog --help` stays fast.
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.environment import LAKE_VARIABLE
from tidelog.server.process.logs import LogFormat, LogLevel

if TYPE_CHECKING:
    from tidelog.log.lake import Lake


# How data is printed.
Format = Literal["text", "json"]
Config = Annotated[
    list[str],
    typer.Option(
        "--config",
        metavar="KEY=VALUE",
        help="Set a configuration key. Repeatable.",
        default_factory=list,
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options of every command, in the order of its help."""

    panel: ClassVar[str] = "Options of every command, before or after its name"

    lake: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help=f"The lake: a folder, s3://…, gs://…, az://… or abfss://…; without it, what {LAKE_VARIABLE} says.",
        ),
    ] = None
    store: Annotated[
        list[str] | None,
        typer.Option(
            "--store-option",
            metavar="KEY=VALUE",
            help="How to reach the lake's object store: lake.s3.endpoint and others (docs/configuration.md)."
            " Repeatable. Others see a command's line: keep secrets in the environment.",
        ),
    ] = None
    output: Annotated[
        Format | None, typer.Option("--format", help="How to print data: for people (the default) or as JSON.")
    ] = None
    debug: Annotated[bool, typer.Option("--debug", help="Show where in the code an error happened.")] = False
    log_format: Annotated[
        LogFormat | None,
        typer.Option(
            envvar="TIDELOG_LOG_FORMAT", help="How the log on stderr is written: lines of text (the default), or JSON."
        ),
    ] = None
    log_level: Annotated[
        LogLevel | None,
        typer.Option(
            envvar="TIDELOG_LOG_LEVEL", help="From which level on: info for what serves, warning for other commands."
        ),
    ] = None


@dataclass(slots=True)
class Session:
    """What the options of one call say. One given after the command's name beats one before it."""

    address: str | None = None
    format: Format | None = None
    debug: bool = False
    store: dict[str, str] = field(default_factory=dict, repr=False)
    log_format: LogFormat | None = None
    log_level: LogLevel | None = None

    @property
    def as_json(self) -> bool:
        """Whether data is printed as JSON."""
        return self.format == "json"

    def named_lake(self) -> str:
        """The address of the lake that was named. Raises `UsageProblemError` when none was."""
        address = self.address if self.address is not None else os.environ.get(LAKE_VARIABLE)
        if not address:
            raise UsageProblemError(
                "No lake is given, and every command works on one. Name it with --lake, or in the environment's"
                f" {LAKE_VARIABLE}. Example: tidelog --lake ./lake topic list"
            )
        return address

    def open_lake(self, *, create: bool = False) -> "Lake":
        """The lake that was named. Raises `UsageProblemError` when none was."""
        address = self.named_lake()
        # Arrow and the log take a quarter of a second to load, which a help text need not wait for.
        from tidelog.log.lake import Lake

        return Lake(address, create=create, options=self.store)


def session(context: typer.Context, given: CommonOptions) -> Session:
    """The session of this call, with what these options add to it. Raises `typer.BadParameter`."""
    if not isinstance(context.obj, Session):
        context.obj = Session()
    call: Session = context.obj
    call.address = given.lake if given.lake is not None else call.address
    call.format = given.output or call.format
    call.debug = call.debug or given.debug
    call.log_format = given.log_format or call.log_format
    if given.log_level is not None:
        call.log_level = given.log_level
        logging.getLogger("tidelog").setLevel(given.log_level.upper())
    call.store.update(_store_pairs(given.store or []))
    return call


def _store_pairs(texts: Sequence[str]) -> dict[str, str]:
    """`pairs` of texts that may hold secrets. Raises `typer.BadParameter`, which shows none of them."""
    if not all(name.strip() and equals for name, equals, _ in (text.partition("=") for text in texts)):
        raise typer.BadParameter("one of them is not of the form key=value.", param_hint="--store-option")
    return pairs("--store-option", texts)


def pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """`["a=1", "b=2=3"]` as `{"a": "1", "b": "2=3"}`; the first '=' divides. Raises `typer.BadParameter`."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not of the form key=value.", param_hint=option)
        if values.setdefault(name, value) != value:
            raise typer.BadParameter(f"{name!r} is given twice, with different values.", param_hint=option)
    return values


@dataclass(frozen=True, kw_only=True)
class ConfigChanges:
    """Configuration keys to set and to reset."""

    config: Config
    delete_config: Annotated[
        list[str],
        typer.Option(
            metavar="KEY", help="Reset a key to its default. Repeatable.", default_factory=list, show_default=False
        ),
    ]

    def by_key(self) -> dict[str, str | None]:
        """The changes as `Lake.alter_topic` takes them. Raises `UsageProblemError`."""
        changes: dict[str, str | None] = {**pairs("--config", self.config)}
        for key in self.delete_config:
            if changes.get(key) is not None:
                raise UsageProblemError(
                    f"{key} is both set and reset: give --config or --delete-config for it, not both."
                )
            changes[key] = None
        return changes

    def begins(self, key: str, value: str) -> bool:
        """Whether a key is set to a value."""
        return pairs("--config", self.config).get(key) == value
