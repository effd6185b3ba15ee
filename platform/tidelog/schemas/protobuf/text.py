"""Text of .proto files read by two libraries: a parser for what was written, and a compiler for what it means."""

import base64
import binascii
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

import protoxy
from antlr4.error.ErrorListener import ErrorListener
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError
from proto_schema_parser import Parser
from proto_schema_parser.ast import File, Import

from tidelog.schemas.base.errors import SchemaError

# Braces and brackets; the compiler gives up, and ends the process, at about 60.
MOST_LEVELS: Final = 40
# What a schema is called among its references.
ROOT: Final = "schema.proto"
# Files that need no reference, beside google/protobuf/, which the compiler has. Confluent's serializers use them.
BUILT_IN: Final[Mapping[str, str]] = {
    "confluent/meta.proto": """syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }""",
    "confluent/type/decimal.proto": """syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
    "google/type/date.proto": """syntax = "proto3"; package google.type;
        message Date { int32 year = 1; int32 month = 2; int32 day = 3; }""",
    "google/type/timeofday.proto": """syntax = "proto3"; package google.type;
        message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }""",
}
# Those that the compiler has.
_COMPILERS: Final = frozenset(
    f"google/protobuf/{name}.proto"
    for name in (
        "any",
        "api",
        "compiler/plugin",
        "descriptor",
        "duration",
        "empty",
        "field_mask",
        "source_context",
        "struct",
        "timestamp",
        "type",
        "wrappers",
    )
)
# Of what a parser would take in the place of what is there; a sentence names no more.
_MOST_WANTED: Final = 3
_KINDS_OF_TOKENS: Final = {"INT_LITERAL": "a number", "IDENTIFIER": "a name", "STRING_LITERAL": "a text in quotes"}
# Texts and comments, which may hold braces; then braces.
_TOKENS: Final = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[{}\[\]<>()]", re.DOTALL)


def parsed(text: str) -> File:
    """What a .proto file says, as written. Raises `SchemaError` with the line of a mistake."""
    level = 0
    for token in _TOKENS.finditer(text):
        level += (token[0] in "{[<(") - (token[0] in "}]>)")
        if level > MOST_LEVELS:
            message = f"The schema is nested deeper than {MOST_LEVELS} levels. Move inner messages to the top."
            raise SchemaError(message)
    listener = _Refusing()

    def listens(recognizer: Any) -> None:
        recognizer.removeErrorListeners()
        recognizer.addErrorListener(listener)

    file: File = Parser(setup_lexer=listens, setup_parser=listens).parse(text)
    return file


def compiled(text: str, references: Mapping[str, str]) -> FileDescriptorSet:
    """The descriptors of a .proto file and of all that it imports, the file last.

    `references`: {name under which a file is imported: its text}. Raises `SchemaError` for what Protobuf
    refuses: unknown types and imports, numbers used twice.
    """
    sources = {**BUILT_IN, **references}
    for name in references:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or name in ("", ".", ROOT) or "\0" in name:
            raise SchemaError(f"The reference '{name}' can't be imported: its name must be a relative path.")
    for source in (text, *sources.values()):
        for element in parsed(source).file_elements:
            if isinstance(element, Import) and not (element.name in sources or element.name in _COMPILERS):
                raise SchemaError(
                    f"The import '{element.name}' is not found. Add the schema to the references under that name."
                )
    with tempfile.TemporaryDirectory(prefix="tidelog-proto-") as folder:
        for name, source in (*sources.items(), (ROOT, text)):
            file = Path(folder, name)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(source, encoding="utf-8")
            except OSError as error:  # too long, or the name of one is a folder of another
                mend = "Give its file a shorter name, and none that another reference's begins with."
                said = f"The reference '{name[:100]}' can't be imported: {error.strerror}. {mend}"
                raise SchemaError(said) from None
        try:
            descriptors = protoxy.compile([Path(folder, ROOT)], [folder], include_source_info=False)
        except protoxy.ProtoxyError as error:
            raise _refused(error, text) from error
        except (ValueError, DecodeError) as error:
            raise SchemaError(f"The schema breaks Protobuf's rules: {error}.") from error
    return descriptors


def descriptor_of(text: str) -> FileDescriptorProto | None:
    """The descriptor that a text is, in base64 (Confluent's `format=serialized`); None for another text."""
    try:
        data = base64.b64decode(text.strip(), validate=True)
        descriptor = FileDescriptorProto.FromString(data)
    except (binascii.Error, ValueError, DecodeError):
        return None
    return descriptor if descriptor.ListFields() else None


class _Refusing(ErrorListener):  # type: ignore[misc] # the library has no types
    """Turns the first mistake into a refusal."""

    def syntaxError(self, *found: Any) -> None:  # noqa: N802
        _, _, line, column, message, _ = found
        raise SchemaError(f"The schema is not Protobuf at line {line}, column {column + 1}: {_said(message)}.")


def _said(message: str) -> str:
    """The parser's words as a sentence, without its list of all that might be there where that is long."""
    for kind, name in _KINDS_OF_TOKENS.items():
        message = message.replace(kind, name)
    lacking = re.fullmatch(r"missing (.+) at (.+)", message, re.DOTALL)
    wrong = re.fullmatch(r"(?:mismatched|extraneous) input (.+?)(?: expecting (.+))?", message, re.DOTALL)
    if lacking is not None:
        wanted, word = lacking[1], lacking[2]
    elif wrong is not None:
        word, wanted = wrong[1], (wrong[2] or "").strip("{}")
    else:
        return message
    what = "the text ends here, and is not whole" if word == "'<EOF>'" else f"{word} can't be here"
    if not wanted or wanted.count(", ") >= _MOST_WANTED:
        return what
    return f"{what}; {' or '.join(wanted.split(', '))} is missing"


def _refused(error: protoxy.ProtoxyError, text: str) -> SchemaError:
    where = ""
    try:
        details = json.loads(error.json_details)
        offset = details["labels"][-1]["span"]["offset"]
        line = text.encode()[:offset].count(b"\n") + 1
        where = f" at line {line}" if details["filename"].endswith(ROOT) else f" in '{details['filename']}'"
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        pass
    return SchemaError(f"The schema breaks Protobuf's rules{where}: {error}.")
