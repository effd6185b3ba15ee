"""Whether a request's bytes are sound: walked by its schema before anything is made of them.

kio's reader is native. It allocates what a length claims, ends at a tag that it does not know, and makes None of what
must not be null. So no byte of a client reaches it unless the walk has found, for all APIs alike:

- every length and count within the bytes that are there, and within the bounds below;
- null only where the schema has it;
- tagged fields that the schema does not know skipped: they are cut out (KIP-482).

A schema's walk is made once, from the metadata of kio's classes; it makes no objects but numbers. Schemas are not
recursive, which bounds the depth. Source: the readers that Kafka's `MessageDataGenerator` generates.
"""

import typing
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from functools import cache, partial
from types import NoneType
from typing import Any, Final

from kio.static.protocol import Entity

from tidelog.broker.wire.primitives import uvarint

# Of all arrays of a request together: a fetch of every partition that sessions may hold.
MOST_ELEMENTS: Final = 500_000
# Kafka's longest string, in the compact form, too.
_LONGEST_STRING: Final = 2**15 - 1
_LONGEST_VARINT: Final = 5
_KINDS_OF_SIZE: Final = {
    1: ("bool", "int8"),
    2: ("int16", "uint16", "error_code"),
    4: ("int32", "uint32", "timedelta_i32"),
    8: ("int64", "uint64", "float64", "timedelta_i64", "datetime_i64"),
    16: ("uuid",),
}
_SIZES: Final = {kind: size for size, kinds in _KINDS_OF_SIZE.items() for kind in kinds}
_MARKS: Final = 1  # a byte says whether an entity that may be null is there

# (bytes, where a part begins, the walk) -> where it ends
Step = Callable[[memoryview, int, "Walk"], int]


class UnsoundError(ValueError):
    """Bytes that are not what their schema says."""


class TooManyElementsError(Exception):
    """More elements than the walk was allowed; what it has seen so far is sound."""


class Walk:
    """One walk: `left`: the elements that it may yet meet; `cuts`: (start, end, what replaces them)."""

    __slots__ = ("cuts", "left")

    def __init__(self, most: int = MOST_ELEMENTS) -> None:
        self.left = most
        self.cuts: list[tuple[int, int, bytes]] = []

    def take(self, count: int, least: int, there: int) -> None:
        """Meet `count` elements of `least` bytes each, where `there` bytes are left."""
        if count * least > there:
            raise UnsoundError(f"{count} elements are claimed where {max(0, there)} bytes are left")
        self.left -= count
        if self.left < 0:
            raise TooManyElementsError


def sound(schema: type[Entity], payload: memoryview, most: int = MOST_ELEMENTS) -> memoryview:
    """The bytes of a request for kio, without what its schema does not know.

    Bytes behind the request are kept. Raises `UnsoundError`, and `TooManyElementsError` for more than `most`.
    """
    walk = Walk(most)
    try:
        end = walk_of(schema)(payload, 0, walk)
    except IndexError:
        end = len(payload) + 1
    if end > len(payload):
        raise UnsoundError(f"its {len(payload)} bytes end within it")
    if walk.cuts:
        payload = memoryview(without(walk.cuts, payload, 0, len(payload)))
    return payload


@cache
def walk_of(schema: type[Entity]) -> Step:
    """The walk over an entity."""
    return _in_turn(_parts(schema)[1])


@cache
def _parts(schema: type[Entity]) -> tuple[int, Sequence[Step], int]:
    """(the least bytes of an entity, its steps, its size without tagged fields if that is fixed, else -1)."""
    hints = typing.get_type_hints(schema)
    flexible = schema.__flexible__
    steps: list[Step] = []
    tagged: dict[int, Step] = {}
    least = skipped = 0
    is_fixed = True
    for field in fields(schema):
        kind, is_array, nullable, inner = kind_of(field, hints[field.name])
        if "tag" in field.metadata:
            tagged[field.metadata["tag"]] = _step(kind, inner, 0, flexible, nullable, is_array)[1]
        elif kind in _SIZES and not is_array:
            skipped += _SIZES[kind]
            least += _SIZES[kind]
        else:
            of_field, step = _step(kind, inner, skipped, flexible, nullable, is_array)
            steps.append(step)
            least += of_field
            skipped, is_fixed = 0, False
    fixed = skipped if is_fixed else -1
    if flexible:
        steps.append(partial(_tags, skipped, tagged) if tagged else partial(_no_tags, skipped))
        least += 1
    elif skipped:
        steps.append(partial(_skip, skipped))
    return least, steps, fixed


def kind_of(field: Field[Any], hint: Any) -> tuple[str, bool, bool, Any]:
    """What a field has: (kio's name of the type, "" for an entity; an array of it?; may it be null?; the entity)."""
    options = typing.get_args(hint)
    nullable = NoneType in options
    bare = next(one for one in options if one is not NoneType) if nullable else hint
    is_array = typing.get_origin(bare) is tuple
    return field.metadata.get("kafka_type", ""), is_array, nullable, typing.get_args(bare)[0] if is_array else bare


def step_over(schema: type[Entity], field: Field[Any], hint: Any) -> Step:
    """The step over one field that has no tag."""
    kind, is_array, nullable, inner = kind_of(field, hint)
    return _step(kind, inner, 0, schema.__flexible__, nullable, is_array)[1]


def step_over_tags(schema: type[Entity]) -> Step:
    """The step over the tagged fields at an entity's end."""
    hints = typing.get_type_hints(schema)
    tagged = {f.metadata["tag"]: step_over(schema, f, hints[f.name]) for f in fields(schema) if "tag" in f.metadata}
    return partial(_tags, 0, tagged) if schema.__flexible__ else partial(_skip, 0)


def _step(kind: str, entity: Any, skip: int, flexible: bool, nullable: bool, is_array: bool) -> tuple[int, Step]:
    """(the least bytes of a field, the step over it and over `skip` bytes before it)."""
    if is_array:
        return (1 if flexible else 4), _array(kind, entity, skip, flexible, nullable)
    if kind in _SIZES:
        return _SIZES[kind], partial(_skip, skip + _SIZES[kind])
    if kind == "":
        least, steps, _ = _parts(entity)
        inner = _in_turn(steps)
        if nullable:
            return _MARKS, partial(_marked, skip, inner)
        return least, partial(_behind, skip, inner)
    most = _LONGEST_STRING if kind == "string" else 2**31 - 1
    if flexible:
        return 1, _compact(skip, nullable, most)
    if kind == "string":
        return 2, _string(skip, nullable)
    return 4, _bytes(skip, nullable)


# --- steps -----------------------------------------------------------------------------------------------------


def _in_turn(steps: Sequence[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]
    if len(steps) == 2:
        first, second = steps

        def both(data: memoryview, at: int, walk: Walk) -> int:
            return second(data, first(data, at, walk), walk)

        return both

    def all_of_them(data: memoryview, at: int, walk: Walk) -> int:
        for step in steps:
            at = step(data, at, walk)
        return at

    return all_of_them


def _skip(size: int, data: memoryview, at: int, walk: Walk) -> int:  # noqa: ARG001 - a step's form
    return at + size


def _behind(skip: int, inner: Step, data: memoryview, at: int, walk: Walk) -> int:
    return inner(data, at + skip, walk)


def _marked(skip: int, inner: Step, data: memoryview, at: int, walk: Walk) -> int:
    at += skip
    mark = data[at]
    if mark not in (1, 255):
        raise UnsoundError(f"an entity is marked by {mark}")
    return at + 1 if mark == 255 else inner(data, at + 1, walk)


def _compact(skip: int, nullable: bool, most: int) -> Step:
    """A string or bytes in the compact form: the length and 1, 0 for null."""

    def step(data: memoryview, at: int, walk: Walk) -> int:  # noqa: ARG001 - a step's form
        at += skip
        length = data[at]
        if 0 < length < 0x80:
            return at + length
        length, at = read_uvarint(data, at)
        if length == 0:
            if not nullable:
                raise UnsoundError("null stands for what is not nullable")
            return at
        if length - 1 > most:
            raise UnsoundError(f"a string claims {length - 1} bytes")
        return at + length - 1

    return step


def _string(skip: int, nullable: bool) -> Step:
    def step(data: memoryview, at: int, walk: Walk) -> int:  # noqa: ARG001 - a step's form
        at += skip
        length = data[at] << 8 | data[at + 1]
        if length <= _LONGEST_STRING:
            return at + 2 + length
        if not nullable or length != 0xFFFF:
            raise UnsoundError("null stands for a string that is not nullable")
        return at + 2

    return step


def _bytes(skip: int, nullable: bool) -> Step:
    def step(data: memoryview, at: int, walk: Walk) -> int:  # noqa: ARG001 - a step's form
        at += skip
        length = read_int32(data, at)
        if length >= 0:
            return at + 4 + length
        if not nullable or length != -1:
            raise UnsoundError("null stands for bytes that are not nullable")
        return at + 4

    return step


def _array(kind: str, entity: Any, skip: int, flexible: bool, nullable: bool) -> Step:
    """An array: its count is checked against the bytes that are there before its elements are walked."""
    fixed = _SIZES.get(kind, -1)
    if kind:
        least, inner = _step(kind, entity, 0, flexible, False, False)
    else:
        least, steps, fixed = _parts(entity)
        inner = _in_turn(steps)
    least = max(least, 1)
    tagged = flexible and not kind
    size = fixed + tagged if fixed >= 0 else 0

    def step(data: memoryview, at: int, walk: Walk) -> int:
        count, at = count_of(data, at + skip, flexible=flexible)
        if count <= 0:
            if count < 0 and not (nullable and count == -1):
                raise UnsoundError("null stands for an array that is not nullable")
            return at
        walk.take(count, least, len(data) - at)
        if size and not (tagged and data[at + fixed : at + count * size : size].tobytes().count(0) < count):
            return at + count * size
        for _ in range(count):
            at = inner(data, at, walk)
        return at

    return step


# --- tagged fields ---------------------------------------------------------------------------------------------


def _no_tags(skip: int, data: memoryview, at: int, walk: Walk) -> int:
    at += skip
    return at + 1 if data[at] == 0 else _tags(0, {}, data, at, walk)


def _tags(skip: int, tagged: dict[int, Step], data: memoryview, at: int, walk: Walk) -> int:
    """Tagged fields: those that are known are walked, the others cut out."""
    start = at = at + skip
    count, at = read_uvarint(data, at)
    if count == 0:
        return at
    walk.take(count, 2, len(data) - at)
    kept: list[bytes] = []
    is_changed = False
    for _ in range(count):
        begins = at
        tag, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        if size > len(data) - at:
            raise UnsoundError(f"a tagged field claims {size} bytes where {max(0, len(data) - at)} are left")
        end = at + size
        step = tagged.get(tag)
        if step is None:
            is_changed = True
        else:
            within = Walk(walk.left)
            if step(data, at, within) != end:
                raise UnsoundError(f"the tagged field {tag} is not of its {size} bytes")
            walk.left = within.left
            if within.cuts:
                content = without(within.cuts, data, at, end)
                kept.append(uvarint(tag) + uvarint(len(content)) + content)
                is_changed = True
            else:
                kept.append(bytes(data[begins:end]))
        at = end
    if is_changed:
        walk.cuts.append((start, at, uvarint(len(kept)) + b"".join(kept)))
    return at


def without(cuts: Sequence[tuple[int, int, bytes]], data: memoryview, start: int, end: int) -> bytes:
    """The bytes from `start` to `end`, with what replaces the cuts."""
    pieces: list[bytes | memoryview] = []
    for first, behind, instead in cuts:
        pieces += data[start:first], instead
        start = behind
    return b"".join([*pieces, data[start:end]])


# --- numbers ---------------------------------------------------------------------------------------------------


def count_of(data: memoryview, at: int, *, flexible: bool) -> tuple[int, int]:
    """(the count of the array that begins there, -1 for null; where its elements begin)."""
    if not flexible:
        return read_int32(data, at), at + 4
    count = data[at]
    if count < 0x80:
        return count - 1, at + 1
    count, at = read_uvarint(data, at)
    return count - 1, at


def read_int32(data: memoryview, at: int) -> int:
    """The number there. Raises `IndexError` behind the end."""
    if at + 4 > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + 4], signed=True)


def read_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """(the number there, where it ends). Raises `IndexError` behind the end."""
    value = shift = 0
    for byte in data[at : at + _LONGEST_VARINT]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    if shift == 7 * _LONGEST_VARINT:
        raise UnsoundError("a number has more than five bytes")
    raise IndexError
