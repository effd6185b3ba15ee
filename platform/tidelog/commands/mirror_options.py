"""Options that name two lakes."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session, pairs

if TYPE_CHECKING:
    from tidelog.log.lake import Lake

# How the address of a source begins that is Kafka, and no lake.
KAFKA: Final = "kafka://"


@dataclass(frozen=True, kw_only=True)
class TwoLakes:
    """A source and its follower."""

    panel: ClassVar[str] = "Which lakes"

    source: Annotated[
        str,
        typer.Option("--from", metavar="ADDRESS", help="The source: the lake that is followed, or kafka://HOST:PORT."),
    ]
    follower: Annotated[str, typer.Option("--to", metavar="ADDRESS", help="The follower.")]
    from_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="How to reach the source's store, beside --store-option. Repeatable."),
    ] = None
    to_option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="How to reach the follower's store, beside --store-option. Repeatable."),
    ] = None

    def open_source(self, call: Session) -> "Lake":
        """The source, which must be there. Raises `UsageProblemError` for what is no lake."""
        from tidelog.log.lake import Lake

        if self.source.startswith(KAFKA):
            raise UsageProblemError(f"{self.source} is no lake: only 'tidelog mirror start' takes {KAFKA} here.")
        return Lake(self.source, create=False, options=call.store | pairs("--from-option", self.from_option or []))

    def open_target(self, call: Session) -> "Lake":
        """The lake that takes copies beside what programs write: created where it is not there."""
        from tidelog.log.lake import Lake

        return Lake(self.follower, create=True, options=call.store | pairs("--to-option", self.to_option or []))

    def open_follower(self, call: Session, *, create: bool | None = None) -> "Lake":
        """The follower, as its mirror opens it."""
        from tidelog.log.lake import Lake

        options = call.store | pairs("--to-option", self.to_option or [])
        return Lake(self.follower, create=create, options=options, may_change_follower=True)


def topic_pattern(text: str | None) -> re.Pattern[str] | None:
    """The pattern of --topics. Raises `UsageProblemError`."""
    try:
        return None if text is None else re.compile(text)
    except re.error as e:
        raise UsageProblemError(f"--topics {text!r} is no regular expression: {e}.") from e
