"""A descriptor as the text that it could have been compiled from: schemas that are sent in base64."""

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from proto_schema_parser import ast

_MOST: Final = 536_870_912
_SPECIAL: Final = frozenset({"map_entry", "uninterpreted_option"})


def unparsed(file: FileDescriptorProto) -> ast.File:
    """What the file says. Types have their full names, with a leading dot; options that extensions define are lost."""
    elements: list[Any] = [ast.Package(file.package)] if file.package else []
    public = {*file.public_dependency}
    elements += [ast.Import(name, public=i in public) for i, name in enumerate(file.dependency)]
    elements += _options(file)
    elements += [_message(one, file.syntax) for one in file.message_type]
    elements += [_enum(one) for one in file.enum_type]
    elements += _extends(file.extension, file.syntax)
    elements += [_service(one) for one in file.service]
    return ast.File(syntax=file.syntax or None, file_elements=elements)


def _message(message: Any, syntax: str) -> ast.Message:
    entries = {one.name: one for one in message.nested_type if one.options.map_entry}
    elements: list[Any] = [
        *_reserved(message, ast.Reserved, 1),
        *_options(message),
        *_ranges(message.extension_range),
        *_extends(message.extension, syntax),
    ]
    oneofs = [ast.OneOf(one.name, []) for one in message.oneof_decl]
    for field in message.field:
        made = _field(field, entries, syntax)
        if field.HasField("oneof_index") and not field.proto3_optional:
            oneofs[field.oneof_index].elements.append(made)
        else:
            elements.append(made)
    elements += [one for one in oneofs if one.elements]
    elements += [_message(one, syntax) for one in message.nested_type if one.name not in entries]
    elements += [_enum(one) for one in message.enum_type]
    return ast.Message(message.name, elements)


def _field(field: Any, entries: dict[str, Any], syntax: str) -> ast.Field | ast.MapField:
    entry = entries.get(field.type_name.rpartition(".")[2]) if field.type_name else None
    options = _options(field)
    if field.HasField("default_value"):
        options.append(ast.Option("default", _default(field)))
    if field.HasField("json_name") and field.json_name != _json_name(field.name):
        options.append(ast.Option("json_name", field.json_name))
    if entry is not None and field.label == FieldDescriptorProto.LABEL_REPEATED:
        key, value = entry.field
        return ast.MapField(field.name, field.number, _type(key), _type(value), options)
    cardinality = None
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        cardinality = ast.FieldCardinality.REPEATED
    elif field.label == FieldDescriptorProto.LABEL_REQUIRED:
        cardinality = ast.FieldCardinality.REQUIRED
    elif field.proto3_optional or (syntax != "proto3" and not field.HasField("oneof_index")):
        cardinality = ast.FieldCardinality.OPTIONAL
    return ast.Field(field.name, field.number, _type(field), cardinality, options)


def _type(field: Any) -> str:
    if field.type_name:
        return str(field.type_name)
    return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_").lower()


def _default(field: Any) -> str | ast.Identifier:
    value: str = field.default_value
    if field.type in (FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES):
        return value if field.type == FieldDescriptorProto.TYPE_BYTES else value.replace("\\", "\\\\")
    return ast.Identifier(value)


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return str(first) + "".join(part[:1].upper() + part[1:] for part in others)


def _enum(enum: Any) -> ast.Enum:
    values = [ast.EnumValue(one.name, one.number, _options(one)) for one in enum.value]
    return ast.Enum(enum.name, [*_reserved(enum, ast.EnumReserved, 0), *_options(enum), *values])


def _reserved(descriptor: Any, kind: Any, past: int) -> Iterator[Any]:
    """Ranges of messages end before their last number, those of enums with it: `past` is 1 or 0."""
    if descriptor.reserved_range:
        yield kind(ranges=[_range(r.start, r.end - past) for r in descriptor.reserved_range])
    if descriptor.reserved_name:
        yield kind(names=list(descriptor.reserved_name))


def _range(start: int, last: int) -> str:
    return str(start) if start == last else f"{start} to {'max' if last >= _MOST - 1 else last}"


def _ranges(ranges: Any) -> Iterator[ast.ExtensionRange]:
    for one in ranges:
        yield ast.ExtensionRange([_range(one.start, one.end - 1)])


def _extends(fields: Any, syntax: str) -> Iterator[ast.Extension]:
    for name in dict.fromkeys(field.extendee for field in fields):
        members: list[Any] = [_field(one, {}, syntax) for one in fields if one.extendee == name]
        yield ast.Extension(name, members)


def _service(service: Any) -> ast.Service:
    methods = [
        ast.Method(
            method.name,
            ast.MessageType(method.input_type, method.client_streaming),
            ast.MessageType(method.output_type, method.server_streaming),
            _options(method),
        )
        for method in service.method
    ]
    return ast.Service(service.name, [*_options(service), *methods])


def _options(one: Any) -> list[Any]:
    options = []
    for field, value in one.options.ListFields():
        if field.name in _SPECIAL or field.is_extension:
            continue
        if field.enum_type is not None:
            value = ast.Identifier(field.enum_type.values_by_number[value].name)
        if isinstance(value, bool | int | float | str | ast.Identifier):
            options.append(ast.Option(field.name, value))
    return options
