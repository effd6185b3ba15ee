"""Large requests as kio's entities, read element by element, so that other threads have their turn in between.

kio reads a request in one go, for as long as that takes, and lets no other thread run Python meanwhile. Here it reads
each element of an array by itself, and what is around the arrays without them. For bytes that are proved sound only.
"""

import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache, partial
from typing import Any, Final

from kio.serial import entity_reader, readers
from kio.static.protocol import Entity

from tidelog.broker.wire.soundness import Step, Walk, count_of, kind_of, step_over, step_over_tags, without

Read = Callable[[memoryview, int], tuple[Any, int]]

# {(kio's name of the type, in the compact form?): its reader}, of all types that requests have arrays of
_OF_ELEMENTS: Final[Mapping[tuple[str, bool], Read]] = {
    ("int8", True): readers.read_int8,
    ("int8", False): readers.read_int8,
    ("int32", True): readers.read_int32,
    ("int32", False): readers.read_int32,
    ("int64", True): readers.read_int64,
    ("int64", False): readers.read_int64,
    ("string", True): readers.read_compact_string,
    ("string", False): readers.read_legacy_string,
}


@cache
def large_reader(schema: type[Entity]) -> Read:
    """Reads an entity as kio does: (bytes, where it begins) -> (the entity, its size)."""
    hints = typing.get_type_hints(schema)
    flexible = schema.__flexible__
    steps: list[tuple[str, Step | Read, bool]] = []
    for field in fields(schema):
        kind, is_array, _, inner = kind_of(field, hints[field.name])
        if "tag" in field.metadata:
            continue
        if is_array:
            steps.append((field.name, _OF_ELEMENTS[kind, flexible] if kind else large_reader(inner), True))
        else:
            steps.append((field.name, step_over(schema, field, hints[field.name]), False))
    if not any(is_array for _, _, is_array in steps):
        return entity_reader(schema)
    steps.append(("", step_over_tags(schema), False))
    return partial(_read, entity_reader(schema), steps, b"\1" if flexible else bytes(4), flexible)


def _read(
    whole: Read,
    steps: list[tuple[str, Any, bool]],
    nothing: bytes,
    flexible: bool,
    data: memoryview,
    start: int,
) -> tuple[Any, int]:
    at, walk = start, Walk()
    arrays: dict[str, tuple[Any, ...]] = {}
    cuts = []
    for name, step, is_array in steps:
        if not is_array:
            at = step(data, at, walk)
            continue
        begins = at
        count, at = count_of(data, at, flexible=flexible)
        if count <= 0:  # none, or null
            continue
        elements = []
        for _ in range(count):
            element, size = step(data, at)
            at += size
            elements.append(element)
        arrays[name] = tuple(elements)
        cuts.append((begins, at, nothing))
    around, _ = whole(memoryview(without(cuts, data, start, at)), 0)
    return replace(around, **arrays), at - start
