"""`tidelog produce`: what its options mean together."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import typer

from tidelog.cli.produce import options
from tidelog.cli.records.escapes import to_bytes, unescape
from tidelog.cli.records.from_input import Headers, LineRule, Record, RecordInput
from tidelog.cli.records.opening import RegistryOptions, opened_client
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import interactive, note, print_json
from tidelog.commands.views import counted
from tidelog.log.base.extras import require
from tidelog.operations.schemas.modules import REGISTRY_MODULES
from tidelog.operations.schemas.subjects import subject_of
from tidelog.server.process.stopping import Stop

if TYPE_CHECKING:
    from tidelog.cli.produce.batches import Parse, Producing
    from tidelog.clients.schema_registry.client import SchemaRegistryClient
    from tidelog.clients.schema_registry.json_values import ValueKind

# Past this many, the report names no single partition.
_MOST_PARTITIONS_NAMED = 8


def produce(call: Session, asked: options.ProduceOptions, where: RegistryOptions) -> None:
    """Produce records: each line of stdin, or of files, is a value.

    Lines are appended in bounded batches while they come in. The first record that the topic refuses ends the
    command with its line's number; all records before it are produced. A topic that is missing is created if the
    lake allows it (auto.create.topics.enable).
    """
    if asked.as_json and (asked.key_delimiter is not None or asked.delimiter is not None or asked.nulls):
        raise UsageProblemError("With --json a line says what is key, value and null: leave out -K, -D and -Z.")
    if asked.repartition and not asked.as_json:
        raise UsageProblemError("--repartition goes with --json: plain lines name no partitions.")
    if asked.repartition and asked.partition is not None:
        raise UsageProblemError("-p sends all records to one partition, so --repartition would do nothing.")
    if asked.value_subject is not None and asked.value_as is None:
        raise UsageProblemError("--value-subject goes with --value-as, which says what values become.")
    if asked.value_type is not None and asked.value_as != "protobuf":
        raise UsageProblemError("--value-type goes with --value-as protobuf: other schemas have one type.")
    if asked.value_as is not None:
        require("registry", *REGISTRY_MODULES)
    divider = _delimiter("-D", "\n" if asked.delimiter is None else asked.delimiter)
    parse = _parser(
        asked.as_json, None if asked.key_delimiter is None else _delimiter("-K", asked.key_delimiter), nulls=asked.nulls
    )
    headers, files = _headers(asked.header or ()), asked.files or ["-"]
    # Arrow and the log: heavy, and not needed for --help.
    from tidelog.cli.produce.batches import Producing

    with ExitStack() as stack:
        stop = stack.enter_context(Stop())
        streams = [
            ("stdin", sys.stdin.buffer) if name == "-" else (name, stack.enter_context(open(name, "rb", buffering=0)))
            for name in files
        ]
        opened = stack.enter_context(call.open_lake())
        if asked.value_as is not None:
            client = stack.enter_context(opened_client(where, opened))
            subject = asked.value_subject or subject_of(asked.topic, "value")
            parse = _encoding(parse, asked.value_as, client, subject, asked.value_type)
        work = Producing(opened, asked, headers, stop)
        if interactive() and "-" in files and not asked.quiet:
            note("A record a line; Ctrl-D ends.")
        try:
            work.run((RecordInput(name, stream, stop.wakeup) for name, stream in streams), divider, parse)
        finally:
            if not asked.quiet:
                _report(asked.topic, work)
        if call.as_json:
            print_json(_produced_json(asked.topic, work))
    if stop.asked:
        raise typer.Exit(stop.exit_code)


def _report(topic: str, work: "Producing") -> None:
    got = sorted(work.partitions.items())
    where = ", ".join(f"[{p}] {counted(found.records, 'record')} up to offset {found.end - 1}" for p, found in got)
    if len(got) > _MOST_PARTITIONS_NAMED:
        where = f"in {len(got)} partitions"
    if work.records or not work.in_doubt:
        note(f"{counted(work.records, 'record')} produced to topic {topic}{': ' if where else ''}{where}")
    if work.in_doubt:
        more = " more" if work.records else ""
        note(f"Whether {counted(work.in_doubt, 'record')}{more} got into topic {topic} is not known: look at its end.")
    if work.unfinished:
        note(f"An unfinished line of {counted(work.unfinished, 'byte')} was not produced.")


def _produced_json(topic: str, work: "Producing") -> dict[str, Any]:
    return {
        "topic": topic,
        "records": work.records,
        "partitions": [
            {"partition": p, "records": found.records, "first": found.first, "end": found.end}
            for p, found in sorted(work.partitions.items())
        ],
    }


def _parser(as_json: bool, key_delimiter: bytes | None, *, nulls: bool) -> "Parse":
    if as_json:
        from tidelog.cli.records.as_json import from_json  # needs Arrow, too

        return from_json
    return LineRule(key_delimiter, empty_is_null=nulls).parse


def _encoding(
    parse: "Parse", kind: "ValueKind", client: "SchemaRegistryClient", subject: str, message_type: str | None
) -> "Parse":
    """The parser, whose values are then encoded; null stays null."""
    from tidelog.clients.schema_registry.json_values import encoder

    encode = encoder(kind, client, subject, message_type)

    def parsed(line: bytes) -> Record:
        record = parse(line)
        return record if record.value is None else record._replace(value=encode(record.value))

    return parsed


def _delimiter(option: str, text: str) -> bytes:
    try:
        delimiter = unescape(text)
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint=option) from None
    if not delimiter:
        raise typer.BadParameter("an empty text divides nothing.", param_hint=option)
    return delimiter


def _is_text(argument: str) -> bool:
    """Whether an argument's bytes are UTF-8; Python keeps others as lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in argument)


def _headers(texts: Sequence[str]) -> Headers:
    """`["a=1", "b"]` as [("a", b"1"), ("b", None)], as kcat reads them."""
    headers: Headers = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not name:
            raise typer.BadParameter(f"{text!r} has no name before the '='.", param_hint="-H")
        if not _is_text(name):
            raise typer.BadParameter(
                f"the name {name!r} is not UTF-8; only a header's value may be any bytes.", param_hint="-H"
            )
        headers.append((name, to_bytes(value) if equals else None))
    return headers
