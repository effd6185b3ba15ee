"""`tidelog schema …`: list, show, register, check, delete the schemas of a lake or a registry, and configure them."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson
import typer

from tidelog.cli.records.opening import RegistryOptions, registry_client
from tidelog.commands.declare import command, family
from tidelog.commands.failures import UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, interactive, print_json, say, table
from tidelog.commands.views import counted

if TYPE_CHECKING:
    from tidelog.clients.schema_registry.client import SchemaRegistryClient
    from tidelog.clients.schema_registry.model import Schema, SchemaReference

schemas = family("List, show, register, check, delete and configure schemas, in a lake or at a registry.")

SubjectArgument = Annotated[str, typer.Argument(metavar="SUBJECT", help="Such as orders-value.", show_default=False)]
FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="The schema: .avsc, .json, .proto, or - for stdin.", show_default=False)
]
KindOption = Annotated[
    str | None,
    typer.Option(
        "--type", metavar="TYPE", help="avro, json or protobuf; without it, by the file's name: .json, .proto."
    ),
]
ReferenceOption = Annotated[
    list[str] | None,
    typer.Option("--reference", metavar="NAME=SUBJECT:VERSION", help="Another schema that this one needs. Repeatable."),
]
NormalizeOption = Annotated[bool, typer.Option("--normalize", help="Take the schema in its normal form.")]

_KINDS: Final = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF"}
_BY_SUFFIX: Final = {".json": "JSON", ".proto": "PROTOBUF"}
_STDIN: Final = "-"
_READONLY: Final = "READONLY"


@command(schemas, "list", example="tidelog schema list --prefix orders")
def list_schemas(
    call: Session,
    where: RegistryOptions,
    prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="Only subjects that begin so.")] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Also what is deleted, not permanently.")] = False,
) -> None:
    """List the subjects, with their versions and the id of the newest. A pipe gets the subjects, one a line."""
    with registry_client(call, where) as client:
        names = client.get_subjects(prefix, deleted)
        out = console()
        if not call.as_json and not out.is_terminal:
            for name in names:
                say(name)
            return
        versions = [(client.get_versions(name, deleted), client.get_version(name, "latest", deleted)) for name in names]
    if call.as_json:
        print_json(
            [
                {"subject": name, "versions": numbers, "id": last.schema_id, "type": last.schema.schema_type}
                for name, (numbers, last) in zip(names, versions, strict=True)
            ]
        )
    elif versions:
        rows = [
            (name, ", ".join(map(str, numbers)), str(last.schema_id), last.schema.schema_type)
            for name, (numbers, last) in zip(names, versions, strict=True)
        ]
        out.print(table(["subject", "versions", ">id", "type"], rows))
    else:
        say("No schemas. 'tidelog schema register' registers one.")


@command(schemas, "show", example="tidelog schema show orders-value")
def show(
    call: Session,
    where: RegistryOptions,
    subject: Annotated[
        str | None, typer.Argument(metavar="SUBJECT", help="Such as orders-value.", show_default=False)
    ] = None,
    version: Annotated[str, typer.Option(metavar="N", help="The version: a number, or latest.")] = "latest",
    schema_id: Annotated[
        int | None, typer.Option("--id", metavar="N", min=0, help="A schema by its id, in place of a subject.")
    ] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Also what is deleted, not permanently.")] = False,
) -> None:
    """Show a schema. As text, it is the schema alone; as JSON, what a registry says of it."""
    if (subject is None) == (schema_id is None):
        raise UsageProblemError("Say which schema to show: give a SUBJECT, or --id.")
    with registry_client(call, where) as client:
        if schema_id is not None:
            schema = client.get_schema(schema_id)
            document = {"id": schema_id, **schema.to_dict()}
        else:
            registered = client.get_version(str(subject), version, deleted)
            schema, document = registered.schema, registered.to_dict()
    if call.as_json:
        print_json(document)
    else:
        typer.echo(schema.schema_str)


@command(schemas, "register", example="tidelog schema register orders-value order.avsc", changes=True)
def register(
    call: Session,
    where: RegistryOptions,
    subject: SubjectArgument,
    file: FileArgument,
    kind: KindOption = None,
    reference: ReferenceOption = None,
    normalize: NormalizeOption = False,
) -> None:
    """Register a schema, and make the lake when it is not there yet.

    One that is there keeps its id; one that is not compatible is refused, and uses none.
    """
    schema = _schema(file, kind, reference)
    with registry_client(call, where, create=True) as client:
        # What servers before Confluent's 7.7 answer is the id alone.
        answer = client.register_schema_full_response(subject, schema, normalize)
        registered = replace(answer, version=client.lookup_schema(subject, schema, normalize).version)
    if call.as_json:
        print_json({"subject": subject, "version": registered.version, "id": registered.schema_id})
    else:
        say(f"{subject} has this schema as version {registered.version}, with the id {registered.schema_id}.")


@command(schemas, "check", example="tidelog schema check orders-value order.avsc")
def check(
    call: Session,
    where: RegistryOptions,
    subject: SubjectArgument,
    file: FileArgument,
    kind: KindOption = None,
    reference: ReferenceOption = None,
    normalize: NormalizeOption = False,
    version: Annotated[
        str | None,
        typer.Option(metavar="N", help="Against this version alone; without it, as a registration would be tested."),
    ] = None,
) -> None:
    """Check whether a schema is compatible. Says what is not, and where; then the exit code is 1."""
    schema = _schema(file, kind, reference)
    with registry_client(call, where) as client:
        messages = client.incompatibilities(subject, schema, version, normalize)
        new = not messages and subject not in client.get_subjects(subject)
    if call.as_json:
        print_json({"subject": subject, "compatible": not messages, "messages": messages})
    elif messages:
        for message in messages:
            say(message)
    elif new:
        say(f"There is no subject {subject} yet: any schema can be its first.")
    else:
        say(f"The schema is compatible with {subject}.")
    if messages:
        raise typer.Exit(1)


@command(schemas, "delete", example="tidelog schema delete orders-value --version 1", changes=True)
def delete(
    call: Session,
    where: RegistryOptions,
    subject: SubjectArgument,
    version: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only this version.")] = None,
    permanent: Annotated[
        bool, typer.Option("--permanent", help="For good; what is deleted so has to be deleted without it before.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """Delete a subject or one of its versions. Ids go on to name their schemas until --permanent, which asks first."""
    if permanent and not yes:
        _ask(subject if version is None else f"version {version} of {subject}")
    with registry_client(call, where) as client:
        gone = (
            client.delete_subject(subject, permanent)
            if version is None
            else [client.delete_version(subject, version, permanent)]
        )
    if call.as_json:
        print_json({"subject": subject, "deleted": gone, "permanent": permanent})
    else:
        say(f"Deleted {counted(len(gone), 'version')} of {subject}{' permanently' if permanent else ''}.")


def _sets(asked: Mapping[str, Any]) -> bool:
    return asked["unset"] or any(asked[name] is not None for name in ("compatibility", "normalize", "mode"))


@command(schemas, "config", example="tidelog schema config orders-value --compatibility FULL", changes=_sets)
def config(
    call: Session,
    where: RegistryOptions,
    subject: Annotated[
        str | None,
        typer.Argument(metavar="SUBJECT", help="A subject; without it, what counts for all.", show_default=False),
    ] = None,
    compatibility: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Set it: BACKWARD, FORWARD, FULL, these with _TRANSITIVE, or NONE.",
            show_default=False,
        ),
    ] = None,
    normalize: Annotated[
        bool | None, typer.Option("--normalize/--no-normalize", help="Whether schemas are taken in their normal form.")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(metavar="MODE", help="Set it: READWRITE, READONLY or IMPORT.", show_default=False),
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Take settings away: then those of all count.")] = False,
) -> None:
    """Show which settings count for a subject or for all, or set them."""
    given = compatibility is not None or normalize is not None or mode is not None
    if unset and given:
        raise UsageProblemError("--unset takes settings away: leave out the others.")
    with registry_client(call, where) as client:
        if unset:
            client.unset(subject)
        _set(client, subject, compatibility, normalize, None if mode is None else mode.upper())
        settings = client.settings_in_force(subject)
    if call.as_json:
        print_json({"subject": subject, **settings})
    else:
        console().print(table(["setting", "value"], [(key, _shown(value)) for key, value in settings.items()]))


def _set(
    client: "SchemaRegistryClient",
    subject: str | None,
    compatibility: str | None,
    normalize: bool | None,
    mode: str | None,
) -> None:
    """Set what is not None. A mode that forbids changes comes last."""

    def set_mode() -> None:
        if mode is not None:
            client.update_global_mode(mode) if subject is None else client.update_mode(subject, mode)

    if mode != _READONLY:
        set_mode()
    if compatibility is not None or normalize is not None:
        from tidelog.clients.schema_registry.model import ServerConfig

        level = None if compatibility is None else compatibility.upper()
        client.set_config(subject, ServerConfig(level, normalize=normalize))
    if mode == _READONLY:
        set_mode()


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _ask(what: str) -> None:
    if not interactive():
        raise UsageProblemError(
            "Nothing was deleted: without a terminal there is no way to ask whether to delete schemas for good. Records"
            " that name them can't be read afterwards. Add --yes."
        )
    if not typer.confirm(f"Delete {what} for good? Records that name its ids can't be read afterwards.", err=True):
        say("Nothing was deleted.")
        raise typer.Exit(1)


def _schema(file: str, kind: str | None, references: list[str] | None) -> "Schema":
    """What a file holds. Raises `UsageProblemError`."""
    from tidelog.clients.schema_registry.model import Schema

    path = Path(file)
    schema_type = _BY_SUFFIX.get(path.suffix.lower(), "AVRO") if kind is None else _KINDS.get(kind.lower())
    if schema_type is None:
        raise UsageProblemError(f"{kind!r} is no type of schemas. There are {', '.join(_KINDS)}.")
    data = sys.stdin.buffer.read() if file == _STDIN else path.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise UsageProblemError(f"{file} is no text in UTF-8, as schemas are.") from None
    return Schema(text, schema_type, [_reference(one) for one in references or ()])


def _reference(text: str) -> "SchemaReference":
    from tidelog.clients.schema_registry.model import SchemaReference

    name, _, rest = text.rpartition("=")
    subject, _, version = rest.rpartition(":")
    if not name or not subject or not (version.isascii() and version.isdecimal()):
        raise UsageProblemError(f"{text!r} is no reference: give NAME=SUBJECT:VERSION, such as a.proto=a:1.")
    return SchemaReference(name, subject, int(version))
