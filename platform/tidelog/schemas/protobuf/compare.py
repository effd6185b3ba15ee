"""What changed between two Protobuf schemas, by Confluent's rules. Fields are the same where their numbers are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidelog.schemas.base.comparison import Ask, Comparing, Difference
from tidelog.schemas.protobuf.model import ProtoField, ProtoMessage, ProtoTypes
from tidelog.schemas.protobuf.rules import ENCODINGS, RULES


@dataclass(frozen=True, slots=True)
class ProtoPart:
    """A message of a schema by its full name; "" for the whole file."""

    types: ProtoTypes
    name: str = ""


def compare(old: ProtoPart, new: ProtoPart) -> Comparing[ProtoPart]:
    """The differences of two files, or of two messages; asks for those of messages."""
    if not old.name:
        before, after = old.types.root, new.types.root
        differences: list[Difference] = []
        if before.package != after.package:
            differences.append(Difference(RULES["PACKAGE_CHANGED"]))
        messages = [[one.name for one in file.message_type] for file in (before, after)]
        enums = [[one.name for one in file.enum_type] for file in (before, after)]
        differences += yield from _compare_types(old, new, (before.package, after.package), messages, enums)
        return differences
    old_message, new_message = old.types.message(old.name), new.types.message(new.name)
    differences = [*_oneofs(old_message, new_message)]
    for number in sorted({*old_message.fields, *new_message.fields}):
        differences += yield from _compare_field(old, new, old_message, new_message, number)
    messages, enums = [[*old_message.messages], [*new_message.messages]], [[*old_message.enums], [*new_message.enums]]
    differences += yield from _compare_types(old, new, (old.name, new.name), messages, enums)
    return differences


def _compare_types(
    old: ProtoPart, new: ProtoPart, spaces: tuple[str, str], messages: list[list[str]], enums: list[list[str]]
) -> Comparing[ProtoPart]:
    differences: list[Difference] = []
    before, after = messages
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            differences.append(Difference(RULES["MESSAGE_REMOVED"], (name,)))
        elif name not in before:
            differences.append(Difference(RULES["MESSAGE_ADDED"], (name,)))
        else:
            inner = [
                ProtoPart(part.types, _inside(space, name)) for part, space in zip((old, new), spaces, strict=True)
            ]
            differences += yield Ask(inner[0], inner[1], (name,))
            if before.index(name) != after.index(name):
                differences.append(Difference(RULES["MESSAGE_MOVED"], (name,)))
    before, after = enums
    for name in dict.fromkeys((*before, *after)):
        if name not in after or name not in before:
            rule = "ENUM_ADDED" if name in after else "ENUM_REMOVED"
            differences.append(Difference(RULES[rule], (name,)))
        else:
            values = [part.types.enum(_inside(space, name)) for part, space in zip((old, new), spaces, strict=True)]
            differences += (one.below((name,)) for one in _enums(values[0], values[1]))
    return differences


def _inside(space: str, name: str) -> str:
    return f"{space}.{name}" if space else name


def _enums(before: Mapping[int, str], after: Mapping[int, str]) -> Iterator[Difference]:
    for number in sorted({*before, *after}):
        if number not in after:
            yield Difference(RULES["ENUM_CONST_REMOVED"], (str(number),))
        elif number not in before:
            yield Difference(RULES["ENUM_CONST_ADDED"], (str(number),))
        elif before[number] != after[number]:
            yield Difference(RULES["ENUM_CONST_CHANGED"], (str(number),))


def _oneofs(old: ProtoMessage, new: ProtoMessage) -> Iterator[Difference]:
    """Oneofs that are new or gone, and fields that exclude each other only now: old data may have both."""
    for name in new.oneofs:
        members = [
            old.fields[number] for number, field in new.fields.items() if field.oneof == name and number in old.fields
        ]
        alone = [field for field in members if not field.oneof]
        groups = len(alone) + len({field.oneof for field in members if field.oneof})
        if groups > 1:
            rule = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if len(alone) > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
            yield Difference(RULES[rule], (name,))
    for name in sorted({*old.oneofs, *new.oneofs}):
        if name not in new.oneofs:
            yield Difference(RULES["ONEOF_REMOVED"], (name,))
        elif name not in old.oneofs:
            yield Difference(RULES["ONEOF_ADDED"], (name,))


def _compare_field(
    old: ProtoPart, new: ProtoPart, old_message: ProtoMessage, new_message: ProtoMessage, number: int
) -> Comparing[ProtoPart]:
    before, after = old_message.fields.get(number), new_message.fields.get(number)
    if after is None:
        assert before is not None  # one of the two has it
        if not before.oneof:
            rule = "REQUIRED_FIELD_REMOVED" if before.label == "required" else "FIELD_REMOVED"
            return (Difference(RULES[rule], (str(number),)),)
        if _wholly_deleted(before.oneof, old_message, new_message):
            return ()
        return (Difference(RULES["ONEOF_FIELD_REMOVED"], (before.oneof, str(number))),)
    path = (after.oneof, str(number)) if after.oneof else (str(number),)
    if before is None:
        added = "ONEOF_FIELD_ADDED" if after.oneof else "FIELD_ADDED"
        return (Difference(RULES["REQUIRED_FIELD_ADDED" if after.label == "required" else added], path),)
    differences: list[Difference] = []
    if before.oneof and not after.oneof:
        differences.append(Difference(RULES["ONEOF_FIELD_MOVED_TO_TOP_LEVEL"], path))
    if before.name != after.name:
        differences.append(Difference(RULES["FIELD_NAME_CHANGED"], path))
    differences += yield from _compare_kinds(old, new, before, after, path)
    return differences


def _wholly_deleted(oneof: str, old: ProtoMessage, new: ProtoMessage) -> bool:
    """Whether a oneof is gone with all of its fields."""
    return oneof not in new.oneofs and not any(
        field.oneof == oneof and number in new.fields for number, field in old.fields.items()
    )


def _compare_kinds(
    old: ProtoPart, new: ProtoPart, before: ProtoField, after: ProtoField, path: tuple[str, ...]
) -> Comparing[ProtoPart]:
    if (before.kind in ENCODINGS) != (after.kind in ENCODINGS) or (before.kind == "map") != (after.kind == "map"):
        return (Difference(RULES["FIELD_KIND_CHANGED"], path),)
    if before.kind in ENCODINGS:
        return _scalars(before, after, path)
    if before.kind == "map":
        differences: list[Difference] = []
        for one_side, other_side in zip(before.entry, after.entry, strict=True):
            differences += yield from _compare_kinds(old, new, one_side, other_side, path)
        return differences
    old_message, new_message = old.types.message(before.type_name), new.types.message(after.type_name)
    if old_message.local_name != new_message.local_name:
        return (Difference(RULES["FIELD_NAMED_TYPE_CHANGED"], path),)
    if old_message.file == old.types.root.name and new_message.file == new.types.root.name:
        return ()  # compared where they are defined
    found = yield Ask(ProtoPart(old.types, old_message.full_name), ProtoPart(new.types, new_message.full_name), path)
    changed = [Difference(RULES["FIELD_NAMED_TYPE_CHANGED"], path)] if any(each.breaking() for each in found) else []
    return [*found, *changed]


def _scalars(before: ProtoField, after: ProtoField, path: tuple[str, ...]) -> tuple[Difference, ...]:
    encoding = ENCODINGS[before.kind]
    if encoding != ENCODINGS[after.kind]:
        return (Difference(RULES["FIELD_SCALAR_KIND_CHANGED"], path),)
    if None in (before.label, after.label) or before.label == after.label:
        return ()
    rule = "FIELD_STRING_OR_BYTES_LABEL_CHANGED" if encoding == "bytes" else "FIELD_NUMERIC_LABEL_CHANGED"
    return (Difference(RULES[rule], path),)
