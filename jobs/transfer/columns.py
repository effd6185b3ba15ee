"""How records become rows of another system: which columns, and in which form. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import typer

from tidelog.commands.failures import UsageProblemError
from tidelog.jobs.transfer.options import quoted

# Formats that take keys and values as bytes; every other gets text unless the options say otherwise.
BYTE_FORMATS = ("kafka", "tidelog")
_COORDINATES = ("topic", "partition", "offset", "timestamp")


# What a key becomes, and a value; "json": the columns of --schema.
KeyForm = Literal["string", "binary"]
ValueForm = Literal["string", "binary", "json"]
# What becomes of a value that is no JSON of the schema.
BadJson = Literal["fail", "null"]


@dataclass(frozen=True, kw_only=True)
class Forms:
    """What the options say of keys and values; None where they don't. `schema` is DDL, for values as JSON."""

    panel: ClassVar[str] = "What keys and values become"

    key: Annotated[
        KeyForm | None, typer.Option("--key-as", help="string unless given; binary for Kafka and topics.")
    ] = None
    value: Annotated[
        ValueForm | None,
        typer.Option(
            "--value-as", help="string unless given, binary for Kafka and topics; json: the columns of --schema."
        ),
    ] = None
    schema: Annotated[
        str | None, typer.Option(metavar="DDL", help="What is in JSON values: 'id long, city string'.")
    ] = None
    bad_json: Annotated[
        BadJson, typer.Option("--on-bad-json", help="What a value does that is no JSON: end the job, or be null.")
    ] = "fail"
    headers: Annotated[bool, typer.Option("--headers", help="A column of headers, too.")] = False


def check_forms(target: str, forms: Forms, selected: bool) -> None:
    """Refuse forms that contradict each other or their target. Raises `UsageProblemError`."""
    if forms.value == "json" and not (forms.schema or "").strip():
        raise UsageProblemError(
            "--value-as json needs --schema, the columns to take out of the JSON, such as --schema 'id long, city"
            " string'. The types are Spark SQL's."
        )
    if forms.schema is not None and forms.value != "json":
        raise UsageProblemError("--schema says what is in JSON values. Add --value-as json, or leave --schema out.")
    if forms.value == "json" and target in BYTE_FORMATS and not selected:
        raise UsageProblemError(
            f"--value-as json makes columns, and {target} takes keys and values as bytes. Leave it out, or build a"
            " value with --select, such as --select 'to_json(value) AS value'."
        )


def decoded(target: str, forms: Forms) -> list[str]:
    """SQL over records for the rows that --where and --select see: a record's columns in the form asked for."""
    default: KeyForm = "binary" if target in BYTE_FORMATS else "string"
    key, value = _form("key", forms.key or default), _value(forms.value or default, forms)
    columns = [f"{key} AS key", f"{value} AS value", *_COORDINATES]
    return [*columns, "headers"] if forms.headers or target in BYTE_FORMATS else columns


def chosen(target: str, forms: Forms, fields: Sequence[str]) -> list[str]:
    """SQL over those rows for what is written when no --select says it; `fields` are the columns of the JSON.

    Raises `UsageProblemError` when a field has a record's name.
    """
    if target == "kafka":
        return ["key", "value", "headers", "topic"]
    if target == "tidelog":
        return ["key", "value", "headers", "topic", "timestamp"]
    if target == "text":
        return ["value"]
    others = ["key", *_COORDINATES, *(["headers"] if forms.headers else [])]
    if forms.value != "json":
        return ["key", "value", *others[1:]]
    both = [name for name in fields if name.lower() in others]
    if both:
        raise UsageProblemError(
            f"--schema has a column {both[0]!r}, and a record has one too. Rename one of them with --select, such as"
            f" --select 'value.{quoted(both[0])} AS its_{both[0]}' --select key --select offset."
        )
    return ["value.*", *others]


def check_partition_by(names: Sequence[str], columns: Collection[str]) -> None:
    """Refuse to divide the output by a column that is not written. Raises `UsageProblemError`."""
    for name in names:
        if name not in columns:
            raise UsageProblemError(
                f"--partition-by {name}: no such column is written; these are: {', '.join(columns)}. Make it with"
                " --select, such as --select '*' --select 'to_date(timestamp) AS day' --partition-by day."
            )


def _form(column: str, form: ValueForm) -> str:
    # A cast alone would put question marks in the place of bytes that are no text, and say nothing.
    return f"validate_utf8(CAST({column} AS STRING))" if form == "string" else column


def _value(form: ValueForm, forms: Forms) -> str:
    if form != "json":
        return _form("value", form)
    mode = "FAILFAST" if forms.bad_json == "fail" else "PERMISSIVE"
    ddl = (forms.schema or "").replace("\\", "\\\\").replace("'", "\\'")
    return f"from_json(CAST(value AS STRING), '{ddl}', map('mode', '{mode}'))"
