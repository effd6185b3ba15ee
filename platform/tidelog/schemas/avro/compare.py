"""Whether one Avro schema reads what another one wrote: the specification's "Schema Resolution".

Names are compared without their namespaces, as Avro's Java library does, so that a record may move to another one; a
reader's aliases count, too.
"""

from typing import Final

from tidelog.schemas.avro.model import ABSENT, PRIMITIVES, AvroType
from tidelog.schemas.base.comparison import Ask, Comparing, CompatibilityRule, Difference

_ROWS: Final = (
    ("TYPE_MISMATCH", "The type at '{path}' of the {reader} schema does not read that of the {writer} schema"),
    ("NAME_MISMATCH", "The name at '{path}' differs between the {reader} schema and the {writer} schema"),
    ("FIXED_SIZE_MISMATCH", "The size at '{path}' differs between the {reader} schema and the {writer} schema"),
    ("MISSING_ENUM_SYMBOLS", "The {reader} schema lacks symbols at '{path}' that the {writer} schema has"),
    ("MISSING_UNION_BRANCH", "The {reader} schema has no branch for the type at '{path}' of the {writer} schema"),
    ("READER_FIELD_AMBIGUOUS", "The field at '{path}' of the {reader} schema is several fields of the {writer} schema"),
    (
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "The field at '{path}' of the {reader} schema has no default, and the {writer} schema does not write it",
    ),
)
RULES: Final = {name: CompatibilityRule(name, compatible=False, lenient=False, sentence=text) for name, text in _ROWS}

# {type of the reader: types of writers that it reads, too}
PROMOTIONS: Final = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}


def compare(writer: AvroType, reader: AvroType) -> Comparing[AvroType]:
    """The differences that keep a reader from reading what a writer wrote; asks for those of inner types."""
    if writer.kind == "union":
        return (yield from _compare_branches(writer, reader))
    if reader.kind == "union":
        for branch in reader.inner:
            if not (yield Ask(writer, branch)):
                return ()
        return (_differs("MISSING_UNION_BRANCH", (), f"reader union lacking writer type: {writer.kind.upper()}"),)
    if reader.kind != writer.kind:
        if writer.kind in PROMOTIONS.get(reader.kind, ()):
            return ()
        message = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
        return (_differs("TYPE_MISMATCH", (), message),)
    if reader.kind in PRIMITIVES:
        return ()
    if reader.kind in ("array", "map"):
        return (yield Ask(writer.inner[0], reader.inner[0], ("items" if reader.kind == "array" else "values",)))
    differences: list[Difference] = []
    if reader.name != writer.name and writer.full_name not in reader.aliases:
        differences.append(_differs("NAME_MISMATCH", ("name",), f"expected: {writer.full_name}"))
    if reader.kind == "fixed":
        if reader.size != writer.size:
            message = f"expected: {writer.size}, found: {reader.size}"
            differences.append(_differs("FIXED_SIZE_MISMATCH", ("size",), message))
    elif reader.kind == "enum":
        missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
        if missing and reader.default is None:
            differences.append(_differs("MISSING_ENUM_SYMBOLS", ("symbols",), f"[{', '.join(missing)}]"))
    else:
        differences += yield from _compare_fields(writer, reader)
    return differences


def _compare_branches(writer: AvroType, reader: AvroType) -> Comparing[AvroType]:
    """Each branch of a writer's union must be read; it is only said of a reader's union, which branches it lacks."""
    differences: list[Difference] = []
    for index, branch in enumerate(writer.inner):
        branch_differences = yield Ask(branch, reader, (str(index),))
        if branch_differences and reader.kind == "union":
            message = f"reader union lacking writer type: {branch.kind.upper()}"
            differences.append(_differs("MISSING_UNION_BRANCH", (str(index),), message))
        else:
            differences += branch_differences
    return differences


def _compare_fields(writer: AvroType, reader: AvroType) -> Comparing[AvroType]:
    written = {own.name: own for own in writer.fields}
    differences: list[Difference] = []
    for index, own in enumerate(reader.fields):
        path = ("fields", str(index))
        sources = [written[name] for name in dict.fromkeys((own.name, *own.aliases)) if name in written]
        if len(sources) > 1:
            differences.append(_differs("READER_FIELD_AMBIGUOUS", path, ", ".join(one.name for one in sources)))
        elif sources:
            differences += yield Ask(sources[0].type, own.type, (*path, "type"))
        elif own.default is ABSENT:
            differences.append(_differs("READER_FIELD_MISSING_DEFAULT_VALUE", path, own.name))
    return differences


def _differs(rule: str, path: tuple[str, ...], detail: str) -> Difference:
    return Difference(RULES[rule], path, detail)
