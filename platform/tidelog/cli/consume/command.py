"""`tidelog consume`: its options, kcat's letters, each with a long name, and what they mean together."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tidelog.cli.consume.offsets import Span, parse_span
from tidelog.cli.records.escapes import unescape
from tidelog.cli.records.opening import RegistryOptions, opened_client
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import note
from tidelog.log.base.extras import require
from tidelog.operations.schemas.modules import REGISTRY_MODULES
from tidelog.server.options import MetricsAt
from tidelog.server.process.serving import metrics_served
from tidelog.server.process.stopping import Stop

if TYPE_CHECKING:
    from tidelog.cli.consume.output import Printer
    from tidelog.log.lake import Lake

_RESETS = {"beginning": "earliest", "end": "latest"}


@dataclass(frozen=True, kw_only=True)
class ConsumeOptions:
    """What a call asks for: kcat's letters, each with a long name."""

    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="What to consume.", show_default=False)]
    partition: Annotated[
        list[int] | None, typer.Option("-p", "--partition", metavar="N", min=0, help="Only this partition. Repeatable.")
    ] = None
    offset: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--offset",
            metavar="POSITION",
            help="Where to start: beginning (the default), end, an offset (42), how many of each partition's last"
            " (-10), or s@MS, a time in ms since the epoch. e@MS is a time to stop at; give -o twice for both.",
        ),
    ] = None
    from_cut: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Start where a cut ends ('tidelog cut list'): what came after it."),
    ] = None
    to_cut: Annotated[
        str | None, typer.Option(metavar="NAME", help="Stop where a cut ends: what it holds, as the topic has it now.")
    ] = None
    group: Annotated[
        str | None,
        typer.Option(
            "-G",
            "--group",
            metavar="GROUP",
            help="Share the partitions with the other members of this consumer group, go on where it stands, and commit"
            " what is printed. -o (beginning or end) counts where it has no committed offset.",
        ),
    ] = None
    metrics: MetricsAt = None
    to_end: Annotated[bool, typer.Option("-e", "--to-end", help="Stop at the end, as of now.")] = False
    count: Annotated[int | None, typer.Option("-c", "--count", metavar="N", min=1, help="Stop after N records.")] = None
    template: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--template",
            metavar="FORMAT",
            help=r"How to print a record: %s value, %k key, %h headers, %t topic, %p partition, %o offset, %T timestamp"
            r" (ms), %S and %K lengths of value and key, %R length of the value as 4 bytes, %%; \n \t \0 \x1e.",
        ),
    ] = None
    json_lines: Annotated[
        bool,
        typer.Option(
            "-J", "--json", help="Print lines of JSON, as 'produce --json' reads them; the same as --format json."
        ),
    ] = False
    key_delimiter: Annotated[
        str | None,
        typer.Option("-K", "--key-delimiter", metavar="DELIM", help="Print the key, and this, before the value."),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option("-D", "--delimiter", metavar="DELIM", help=r"What to print after each record; \n by default."),
    ] = None
    nulls: Annotated[
        bool, typer.Option("-Z", "--nulls", help="Print NULL for a null key, value or header, not nothing.")
    ] = False
    print_headers: Annotated[
        bool, typer.Option("--print-headers", help="Print the headers, and a tab, before the record.")
    ] = False
    value_as: Annotated[
        Literal["avro", "json", "protobuf"] | None,
        typer.Option(
            help="Values name a schema, as serializers of registries write them: print what they hold, as JSON.",
            show_default=False,
        ),
    ] = None
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Don't tell on stderr when a partition's end is reached.")
    ] = False


def consume(call: Session, asked: ConsumeOptions, where: RegistryOptions) -> None:
    """Consume records and print them, then wait for more: Ctrl-C ends.

    All partitions are followed at once, each in the order of its offsets; partitions that are added later, too. With
    --group they are shared with the group's other members.
    Bytes are printed as they are; in JSON, those that are no UTF-8 become {"base64": "…"}.
    """
    if asked.json_lines and call.format == "text":
        raise UsageProblemError("--json and --format text contradict one another: give one of them.")
    as_json = asked.json_lines or call.as_json
    _check_style(asked, as_json)
    if asked.value_as is not None:
        require("registry", *REGISTRY_MODULES)
    try:
        span = parse_span(asked.offset or ())
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint="-o") from None
    _check_cuts(asked, span)
    text = _template(asked)
    # Arrow and the log: heavy, and not needed for --help.
    from tidelog.cli.consume.follow import Following
    from tidelog.cli.consume.output import JSON, Printer, bytes_to_stdout, decoded_style, text_style
    from tidelog.cuts.cut_log import CutLog

    try:
        style = JSON if as_json else text_style(text, nulls=asked.nulls)
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint="-f") from None
    reset = _reset(span, asked.partition) if asked.group is not None else ""
    with Stop() as stop, call.open_lake() as opened, ExitStack() as stack:
        out = bytes_to_stdout()
        if asked.value_as is not None:
            client = stack.enter_context(opened_client(where, opened))
            style = decoded_style(style, asked.value_as, client)
        if asked.group is None:
            cuts = CutLog(opened)
            work = Following(
                opened,
                asked.topic,
                span,
                only=asked.partition or (),
                to_end=asked.to_end,
                headers=style.headers,
                from_cut=None if asked.from_cut is None else cuts.get(asked.from_cut),
                to_cut=None if asked.to_cut is None else cuts.get(asked.to_cut),
            )
            printer = Printer(asked.topic, style, out, asked.count, quiet=asked.quiet)
            _serve(asked, opened, printer, stack)
            printer.print_all(work.events(), stop)
        else:
            from tidelog.cli.consume.follow_as_member import GroupFollowing

            with GroupFollowing(
                opened,
                asked.topic,
                asked.group,
                reset=reset,
                to_end=asked.to_end,
                count=asked.count,
                headers=style.headers,
            ) as member:
                printer = Printer(asked.topic, style, out, None, quiet=asked.quiet)
                _serve(asked, opened, printer, stack)
                printer.print_all(member.events(), stop)
                member.commit()
    if stop.asked:
        raise typer.Exit(stop.exit_code)


def _serve(asked: ConsumeOptions, lake: "Lake", printer: "Printer", stack: ExitStack) -> None:
    """Serve metrics until the stack ends, where they are asked for."""
    served = stack.enter_context(metrics_served(asked.metrics, lake, printer.metrics))
    if served is not None:
        note(f"metrics at http://{served}/metrics")


def _reset(span: Span, partitions: list[int] | None) -> str:
    """Where a group starts that has no committed offset: earliest or latest. Raises `UsageProblemError`."""
    if partitions:
        raise UsageProblemError("With --group the group shares out the partitions: leave out -p, or --group.")
    if span.start not in _RESETS or span.stop_ms is not None:
        raise UsageProblemError(
            "With --group the group's committed offsets say where to start: give -o beginning or -o end, which count"
            " where there are none, or set offsets with 'tidelog group reset-offsets'."
        )
    return _RESETS[span.start]


def _check_cuts(asked: ConsumeOptions, span: Span) -> None:
    given = [name for name, cut in (("--from-cut", asked.from_cut), ("--to-cut", asked.to_cut)) if cut is not None]
    if given and asked.group is not None:
        raise UsageProblemError(
            f"{given[0]} says what to read, and with --group the group's offsets do: leave out one of them; 'tidelog"
            " group reset-offsets GROUP --to-cut NAME' sets the group back to a cut."
        )
    if asked.from_cut is not None and (asked.offset and span.start != "beginning"):
        raise UsageProblemError("--from-cut and -o both say where to start: give one of them.")
    if asked.to_cut is not None and span.stop_ms is not None:
        raise UsageProblemError("--to-cut and -o e@MS both say where to stop: give one of them.")


def _check_style(asked: ConsumeOptions, as_json: bool) -> None:
    """Refuse options that could do nothing beside one another: some are for text, some a format string replaces."""
    given = {"-K": asked.key_delimiter, "-D": asked.delimiter, "--print-headers": asked.print_headers or None}
    parts = [option for option, value in given.items() if value is not None]
    text_only = [*(["-f"] if asked.template is not None else []), *parts, *(["-Z"] if asked.nulls else [])]
    if as_json and text_only:
        raise UsageProblemError(f"{text_only[0]} is for text, but JSON is asked for: leave out one of them.")
    if asked.template is not None and parts:
        raise UsageProblemError(f"With -f the format says it all: leave out {parts[0]}, and put %k or %h into it.")


def _template(asked: ConsumeOptions) -> str:
    """The format string that the simpler options stand for."""
    if asked.template is not None:
        return asked.template
    parts = ["%h\t"] if asked.print_headers else []
    if asked.key_delimiter is not None:
        parts += ["%k", _literal("-K", asked.key_delimiter)]
    return "".join([*parts, "%s", "\n" if asked.delimiter is None else _literal("-D", asked.delimiter)])


def _literal(option: str, divider: str) -> str:
    try:
        unescape(divider)
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint=option) from None
    return divider.replace("%", "%%")
