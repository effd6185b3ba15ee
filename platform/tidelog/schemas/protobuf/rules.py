"""What each change of a Protobuf schema means, after Confluent's rules: one a line."""

from typing import Final

from tidelog.schemas.base.comparison import CompatibilityRule

_FINE = "'{path}' changed, and the {reader} schema reads what the {writer} schema wrote"
_GOOD, _BREAKS = True, False

_ROWS: Final[tuple[tuple[str, bool, str], ...]] = (
    ("PACKAGE_CHANGED", _BREAKS, "The package of the {reader} schema is not that of the {writer} schema"),
    ("MESSAGE_ADDED", _GOOD, _FINE),
    ("MESSAGE_MOVED", _GOOD, _FINE),
    ("MESSAGE_REMOVED", _BREAKS, "The {reader} schema lacks the message '{path}' of the {writer} schema"),
    ("ENUM_ADDED", _GOOD, _FINE),
    ("ENUM_REMOVED", _GOOD, _FINE),
    ("ENUM_CONST_ADDED", _GOOD, _FINE),
    ("ENUM_CONST_CHANGED", _GOOD, _FINE),
    ("ENUM_CONST_REMOVED", _GOOD, _FINE),
    ("FIELD_ADDED", _GOOD, _FINE),
    ("FIELD_REMOVED", _GOOD, _FINE),
    ("FIELD_NAME_CHANGED", _GOOD, _FINE),
    ("FIELD_KIND_CHANGED", _BREAKS, "The field '{path}' is a scalar, a message or a map in only one schema"),
    ("FIELD_SCALAR_KIND_CHANGED", _BREAKS, "The scalar field '{path}' has another encoding in the {reader} schema"),
    ("FIELD_NAMED_TYPE_CHANGED", _BREAKS, "The message field '{path}' has another type in the {reader} schema"),
    ("FIELD_NUMERIC_LABEL_CHANGED", _BREAKS, "The numeric field '{path}' has another label in the {reader} schema"),
    ("FIELD_STRING_OR_BYTES_LABEL_CHANGED", _GOOD, _FINE),
    ("REQUIRED_FIELD_ADDED", _BREAKS, "The {reader} schema requires '{path}', which the {writer} schema lacks"),
    ("REQUIRED_FIELD_REMOVED", _BREAKS, "The {reader} schema lacks '{path}', which the {writer} schema requires"),
    ("ONEOF_ADDED", _GOOD, _FINE),
    ("ONEOF_REMOVED", _GOOD, _FINE),
    ("ONEOF_FIELD_ADDED", _GOOD, _FINE),
    ("ONEOF_FIELD_REMOVED", _BREAKS, "The {reader} schema lacks the field '{path}' of a oneof of the {writer} schema"),
    ("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", _GOOD, _FINE),
    ("MULTIPLE_FIELDS_MOVED_TO_ONEOF", _BREAKS, "Fields of the oneof '{path}' of the {reader} schema were in none"),
    ("FIELD_MOVED_TO_EXISTING_ONEOF", _BREAKS, "A field joined others in the oneof '{path}' of the {reader} schema"),
)  # fmt: skip

RULES: Final = {name: CompatibilityRule(name, fine, fine, sentence) for name, fine, sentence in _ROWS}

# {scalar type, or "enum": its encoding}; types of one encoding read each other
# (https://protobuf.dev/programming-guides/proto3/#updating)
ENCODINGS: Final = {
    "int32": "varint",
    "int64": "varint",
    "uint32": "varint",
    "uint64": "varint",
    "bool": "varint",
    "enum": "varint",
    "sint32": "zigzag",
    "sint64": "zigzag",
    "string": "bytes",
    "bytes": "bytes",
    "fixed32": "fixed32",
    "sfixed32": "fixed32",
    "fixed64": "fixed64",
    "sfixed64": "fixed64",
    "float": "float",
    "double": "double",
}
