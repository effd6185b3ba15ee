"""Text of .proto files as Confluent's registry writes it: its canonical and its normalised text.

The canonical text keeps names and order as they were written, and drops comments: messages before enums, in a message
reserved numbers, options, fields, oneofs, groups, extensions and then inner types, with a blank line between. The
normalised one also sorts what has no order, and writes every type's full name.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from proto_schema_parser import ast

from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.protobuf.rules import ENCODINGS

_MAX_NUMBER: Final = 536_870_911
_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", "'": "\\'", '"': '\\"',
}  # fmt: skip
_UNESCAPED: Final = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_SINGLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
SCALARS: Final = frozenset(ENCODINGS) - {"enum"}
# Gives a type's full name with a leading dot, of a name as it is written inside of a message.
Resolve = Callable[[str, tuple[str, ...]], str]


def written(file: ast.File, resolve: Resolve | None = None) -> str:
    """A file's canonical text; with `resolve`, its normalised one."""
    return _ProtoWriter(resolve).file(file)


class _ProtoWriter:
    def __init__(self, resolve: Resolve | None) -> None:
        self._resolve = resolve
        self._normalized = resolve is not None
        self._scope: tuple[str, ...] = ()

    def file(self, file: ast.File) -> str:
        made = ""
        if file.syntax is not None and not (self._normalized and file.syntax == "proto2"):
            made += f'syntax = "{file.syntax}";\n'
        package = next((one.name for one in _of(file.file_elements, ast.Package)), None)
        if package is not None:
            made += f"package {package};\n"
        every = _of(file.file_elements, ast.Import)
        lines = [*self._imports("", every, public=False), *self._imports("public ", every, public=True)]
        made += self._block(lines)
        made += self._block(self._options(file.file_elements))
        made += self._block(self._types(file.file_elements))
        made += self._block(self._extends(file.file_elements))
        return made + self._block(self._service(one) for one in _of(file.file_elements, ast.Service))

    def _imports(self, word: str, every: Sequence[ast.Import], *, public: bool) -> list[str]:
        names = [one.name for one in every if one.public is public]
        return [f'import {word}"{name}";\n' for name in (sorted({*names}) if self._normalized else names)]

    def _block(self, parts: Iterable[str]) -> str:
        text = "".join(parts)
        return f"\n{text}" if text else ""

    def _braced(self, head: str, *groups: Iterable[str]) -> str:
        inside = "".join(self._block(_indented(part) for part in group) for group in groups)
        return f"{head} {{{inside}}}\n"

    # --- messages ------------------------------------------------------------------------------------------

    def _types(self, elements: Sequence[Any]) -> list[str]:
        messages = [self._message(one) for one in _of(elements, ast.Message)]
        return messages + [self._enum(one) for one in _of(elements, ast.Enum)]

    def _message(self, message: ast.Message) -> str:
        outer, self._scope = self._scope, (*self._scope, message.name)
        elements = message.elements
        fields = [one for one in elements if isinstance(one, ast.Field | ast.MapField)]
        made = self._braced(
            f"message {message.name}",
            self._reserved(_of(elements, ast.Reserved)),
            self._options(elements),
            [self._field(one) for one in self._by_number(fields)],
            [self._oneof(one) for one in self._oneofs(elements)],
            [self._group(one) for one in self._by_number(_of(elements, ast.Group))],
            self._extensions(elements),
            self._extends(elements),
            self._types(elements),
        )
        self._scope = outer
        return made

    def _oneofs(self, elements: Sequence[Any]) -> list[ast.OneOf]:
        oneofs = _of(elements, ast.OneOf)
        if not self._normalized:
            return oneofs
        full = [one for one in oneofs if _of(one.elements, ast.Field)]
        return sorted(full, key=lambda one: min(own.number for own in _of(one.elements, ast.Field)))

    def _oneof(self, oneof: ast.OneOf) -> str:
        fields = [self._field(one) for one in self._by_number(_of(oneof.elements, ast.Field))]
        groups = [self._group(one) for one in self._by_number(_of(oneof.elements, ast.Group))]
        return self._braced(f"oneof {oneof.name}", self._options(oneof.elements), fields, groups)

    def _group(self, group: ast.Group) -> str:
        label = f"{group.cardinality.value.lower()} " if group.cardinality else ""
        fields = [one for one in group.elements if isinstance(one, ast.Field | ast.MapField)]
        parts = [self._field(one) for one in self._by_number(fields)]
        return self._braced(f"{label}group {group.name} = {group.number}", parts)

    def _field(self, field: ast.Field | ast.MapField) -> str:
        if isinstance(field, ast.MapField):
            kind = f"map<{field.key_type}, {self._type(field.value_type)}>"
        else:
            kind = self._type(field.type)
        label = getattr(field, "cardinality", None)
        word = f"{label.value.lower()} " if label else ""
        special = [one for one in field.options if one.name in ("default", "json_name")]
        options = [one for one in field.options if one not in special]
        options += sorted(special, key=lambda one: one.name)
        return f"{word}{kind} {field.name} = {field.number}{self._compact(options)};\n"

    def _type(self, name: str) -> str:
        if self._resolve is None or name in SCALARS:
            return name
        return self._resolve(name, self._scope)

    def _enum(self, enum: ast.Enum) -> str:
        values = _of(enum.elements, ast.EnumValue)
        if self._normalized:
            values = sorted(values, key=lambda one: (one.number, one.name))
        lines = [f"{one.name} = {one.number}{self._compact(one.options)};\n" for one in values]
        reserved = self._reserved(_of(enum.elements, ast.EnumReserved))
        options = self._options(enum.elements)
        # Behind reserved numbers Confluent's writer leaves no blank line.
        return self._braced(f"enum {enum.name}", [*reserved, *options, *lines])

    def _reserved(self, reserved: Sequence[ast.Reserved | ast.EnumReserved]) -> list[str]:
        lines = [[*map(self._range, one.ranges), *(f'"{name}"' for name in one.names)] for one in reserved]
        if self._normalized:
            lines = sorted(([one] for line in lines for one in line), key=lambda line: (_start(line[0]), line[0]))
        return [f"reserved {', '.join(line)};\n" for line in lines]

    def _range(self, text: str) -> str:
        first, *last = re.split(r"\s+to\s+", text.strip())
        if not last or (self._normalized and first == last[0]):
            return first
        return f"{first} to {'max' if last[0] == str(_MAX_NUMBER) else last[0]}"

    def _extensions(self, elements: Sequence[Any]) -> list[str]:
        ranges = [(one, [self._range(text) for text in one.ranges]) for one in _of(elements, ast.ExtensionRange)]
        if self._normalized:
            ranges = sorted(
                ((one, [text]) for one, texts in ranges for text in texts), key=lambda pair: _start(pair[1][0])
            )
        return [f"extensions {', '.join(texts)}{self._compact(one.options)};\n" for one, texts in ranges]

    def _extends(self, elements: Sequence[Any]) -> list[str]:
        merged: dict[str, list[Any]] = {}
        made: list[tuple[str, list[Any]]] = []
        for extension in _of(elements, ast.Extension):
            fields = [own for own in extension.elements if isinstance(own, ast.Field)]
            if self._normalized:
                merged.setdefault(self._type(extension.typeName), []).extend(fields)
            else:
                made.append((extension.typeName, fields))
        return [
            self._braced(f"extend {name}", [self._field(own) for own in self._by_number(fields)])
            for name, fields in (*made, *merged.items())
        ]

    def _by_number(self, elements: Sequence[Any]) -> Sequence[Any]:
        return sorted(elements, key=lambda one: one.number) if self._normalized else elements

    # --- services ------------------------------------------------------------------------------------------

    def _service(self, service: ast.Service) -> str:
        methods = [self._method(one) for one in _of(service.elements, ast.Method)]
        return self._braced(f"service {service.name}", self._options(service.elements), methods)

    def _method(self, method: ast.Method) -> str:
        types = [
            f"{'stream ' if one.stream else ''}{self._type(one.type)}"
            for one in (method.input_type, method.output_type)
        ]
        options = "".join(_indented(line) for line in self._options(method.elements))
        block = f" {{\n{options}}}" if options else ""
        return f"rpc {method.name} ({types[0]}) returns ({types[1]}){block};\n"

    # --- options -------------------------------------------------------------------------------------------

    def _sorted_options(self, options: Sequence[ast.Option]) -> Sequence[ast.Option]:
        return sorted(options, key=lambda one: one.name) if self._normalized else options

    def _options(self, elements: Sequence[Any]) -> list[str]:
        return [f"option {self._option(one)};\n" for one in self._sorted_options(_of(elements, ast.Option))]

    def _compact(self, options: Sequence[ast.Option]) -> str:
        listed = [self._option(one) for one in self._sorted_options(options)]
        if len(listed) <= 1:
            return f" [{listed[0]}]" if listed else ""
        lines = (_indented(one + ("," if i < len(listed) - 1 else "")) for i, one in enumerate(listed))
        return f" [\n{''.join(lines)}]"

    def _option(self, option: ast.Option) -> str:
        return f"{option.name} = {self._value(option.value)}"

    def _value(self, value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return f'"{_escaped(_plain(value))}"'
        if isinstance(value, ast.Identifier):
            return value.name
        if isinstance(value, ast.MessageLiteral):
            fields = _of(value.elements, ast.MessageLiteralField)
            if self._normalized:
                fields = sorted(fields, key=lambda one: one.name)
            listed = [f"{one.name}: {self._value(one.value)}" for one in fields]
            return f"{{\n{_listed(listed)}}}"
        if isinstance(value, list):
            if self._normalized and len(value) == 1:
                return self._value(value[0])
            return f"[\n{_listed([self._value(one) for one in value])}]"
        if isinstance(value, int | float):
            return repr(value)
        raise SchemaError(f"The value {value!r} of an option can't be read.")


def _of(elements: Sequence[Any], kind: type[Any]) -> list[Any]:
    return [one for one in elements if isinstance(one, kind)]


def _start(text: str) -> int:
    digits = re.match(r"-?\d+", text)
    return int(digits[0]) if digits else 2**31 - 1


def _listed(parts: Sequence[str]) -> str:
    return "".join(_indented(part + ("," if i < len(parts) - 1 else "")) for i, part in enumerate(parts))


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.removesuffix("\n").split("\n"))


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(one, one) for one in text)


def _plain(literal: str) -> str:
    """A literal's text without its escapes."""

    def of(found: re.Match[str]) -> str:
        octal, hexadecimal, single = found.groups()
        if octal or hexadecimal:
            return chr(int(octal, 8) if octal else int(hexadecimal, 16))
        return _SINGLE.get(single, single)

    return _UNESCAPED.sub(of, literal)
