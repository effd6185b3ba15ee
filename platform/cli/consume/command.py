"""`tidelog consume`: what its options mean together."""

import typer

from tidelog.cli.consume import options
from tidelog.cli.consume.offsets import Anchor, Span, parse_span
from tidelog.cli.records.escapes import unescape
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Format, Session
from tidelog.commands.stopping import Stop

_RESETS = {Anchor.BEGINNING: "earliest", Anchor.END: "latest"}


def consume(
    call: Session,
    topic: options.TopicArgument,
    partition: options.Partitions = None,
    offset: options.Offset = None,
    group: options.Group = None,
    to_end: options.ToEnd = False,
    count: options.Count = None,
    template: options.Template = None,
    json_lines: options.JsonLines = False,
    key_delimiter: options.KeyDelimiter = None,
    delimiter: options.Delimiter = None,
    nulls: options.Nulls = False,
    print_headers: options.PrintHeaders = False,
    quiet: options.Quiet = False,
) -> None:
    """Consume records and print them, then wait for more: Ctrl-C ends.

    All partitions are followed at once, each in the order of its offsets; partitions that are added later, too. With
    --group they are shared with the group's other members.
    Bytes are printed as they are; in JSON, those that are no UTF-8 become {"base64": "…"}.
    """
    if json_lines and call.format is Format.TEXT:
        raise UsageProblemError("--json and --format text contradict one another: give one of them.")
    as_json = json_lines or call.as_json
    parts = {"-K": key_delimiter, "-D": delimiter, "--print-headers": print_headers}
    _check_style(as_json, template, [o for o, v in parts.items() if v not in (None, False)], nulls)
    try:
        span = parse_span(offset or ())
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint="-o") from None
    text = _template(template, key_delimiter, delimiter, print_headers)
    # Arrow and the log: heavy, and not needed for --help.
    from tidelog.cli.consume.follow import Following
    from tidelog.cli.consume.output import JSON, Printer, bytes_to_stdout, text_style

    try:
        style = JSON if as_json else text_style(text, nulls=nulls)
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint="-f") from None
    reset = _reset(span, partition) if group is not None else ""
    with Stop() as stop, call.open_lake() as opened:
        out = bytes_to_stdout()
        if group is None:
            work = Following(opened, topic, span, only=partition or (), to_end=to_end, headers=style.headers)
            Printer(topic, style, out, count, quiet=quiet).print_all(work.events(), stop)
        else:
            from tidelog.cli.consume.follow_as_member import GroupFollowing

            with GroupFollowing(
                opened, topic, group, reset=reset, to_end=to_end, count=count, headers=style.headers
            ) as member:
                Printer(topic, style, out, None, quiet=quiet).print_all(member.events(), stop)
                member.commit()
    if stop.asked:
        raise typer.Exit(stop.exit_code)


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


def _check_style(as_json: bool, template: str | None, parts: list[str], nulls: bool) -> None:
    """Refuse options that could do nothing beside one another; `parts`: those that a format string replaces."""
    text_only = [*(["-f"] if template is not None else []), *parts, *(["-Z"] if nulls else [])]
    if as_json and text_only:
        raise UsageProblemError(f"{text_only[0]} is for text, but JSON is asked for: leave out one of them.")
    if template is not None and parts:
        raise UsageProblemError(f"With -f the format says it all: leave out {parts[0]}, and put %k or %h into it.")


def _template(template: str | None, key_delimiter: str | None, delimiter: str | None, print_headers: bool) -> str:
    """The format string that the simpler options stand for."""
    if template is not None:
        return template
    parts = ["%h\t"] if print_headers else []
    if key_delimiter is not None:
        parts += ["%k", _literal("-K", key_delimiter)]
    return "".join([*parts, "%s", "\n" if delimiter is None else _literal("-D", delimiter)])


def _literal(option: str, divider: str) -> str:
    try:
        unescape(divider)
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint=option) from None
    return divider.replace("%", "%%")
