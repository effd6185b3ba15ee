"""What changed between two JSON Schemas, by Confluent's rules."""

from collections.abc import Hashable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from tidelog.schemas.base.comparison import Ask, Comparing, Difference, Differences
from tidelog.schemas.base.json_text import Json, dumps
from tidelog.schemas.json_schema.arrays import compare_arrays
from tidelog.schemas.json_schema.document import PartShape, SchemaPart
from tidelog.schemas.json_schema.limits import limit, limits
from tidelog.schemas.json_schema.objects import compare_objects
from tidelog.schemas.json_schema.rules import RULES

_LENGTHS = (("maxLength", "MAX_LENGTH"), ("minLength", "MIN_LENGTH"))
_BOUNDS = (("maximum", "MAXIMUM"), ("minimum", "MINIMUM"))
_ANNOTATIONS = (
    (("$id", "id"), "ID_CHANGED"),
    (("title",), "TITLE_CHANGED"),
    (("description",), "DESCRIPTION_CHANGED"),
    (("default",), "DEFAULT_CHANGED"),
)


def compare(old: SchemaPart, new: SchemaPart, *, lenient: bool = False) -> Comparing[SchemaPart]:
    """The differences of two parts; asks for those of inner ones."""
    if (old.shape is PartShape.COMBINED) != (new.shape is PartShape.COMBINED):
        fitting: Differences | None = yield from _compare_alternatives(old, new, lenient)
        if fitting is not None:
            return fitting
    if old.shape is not new.shape:
        if old.shape is PartShape.NOTHING or new.shape is PartShape.ANYTHING or _both_bytes(old, new):
            return ()
        return (Difference(RULES["TYPE_CHANGED"]),)
    differences = list(_annotations(old, new))
    if old.shape is PartShape.STRING:
        differences += _strings(old, new)
    elif old.shape is PartShape.NUMBER:
        differences += _numbers(old, new)
    elif old.shape is PartShape.ENUM:
        differences += _enums(old, new)
    elif old.shape is PartShape.CONST:
        if _frozen(old.of["const"]) != _frozen(new.of["const"]):
            differences.append(Difference(RULES["ENUM_ARRAY_CHANGED"], ("const",)))
    elif old.shape is PartShape.NOT:
        # What must not match: the other way round.
        inner = yield Ask(new.child(new.of["not"]), old.child(old.of["not"]))
        rule = "NOT_TYPE_NARROWED" if _fine(inner, lenient) else "NOT_TYPE_EXTENDED"
        if new.of["not"] != old.of["not"]:
            differences.append(Difference(RULES[rule], ("not",)))
    elif old.shape is PartShape.COMBINED:
        differences += yield from _compare_combined(old, new, lenient)
    elif old.shape is PartShape.OBJECT:
        differences += yield from compare_objects(old, new, lenient)
    elif old.shape is PartShape.ARRAY:
        differences += yield from compare_arrays(old, new, lenient)
    return differences


def _fine(differences: Differences, lenient: bool) -> bool:
    return not any(one.breaking(lenient=lenient) for one in differences)


def _compare_alternatives(old: SchemaPart, new: SchemaPart, lenient: bool) -> Any:
    """A type against alternatives of types; None where no alternative fits."""
    if new.shape is PartShape.COMBINED:
        alternatives, rule = new.parts(), "SUM_TYPE_EXTENDED"
        usable = new.criterion != "allOf"
    else:
        alternatives, rule = old.parts(), "PRODUCT_TYPE_NARROWED"
        usable = old.criterion == "allOf"
    if len(alternatives) == 1:
        rule, usable = "", True
    for alternative in alternatives if usable else ():
        found = yield Ask(old, alternative) if new.shape is PartShape.COMBINED else Ask(alternative, new)
        if _fine(found, lenient):
            return [*found, *([Difference(RULES[rule])] if rule else [])]
    return None


def _compare_combined(old: SchemaPart, new: SchemaPart, lenient: bool) -> Comparing[SchemaPart]:
    before, after = old.parts(), new.parts()
    differences: list[Difference] = []
    if old.criterion != new.criterion:
        extended = (
            new.criterion == "anyOf"
            or (len(before) == 1 and (len(after) == 1 or new.criterion == "oneOf"))
            or (len(after) == 1 and old.criterion == "allOf")
        )
        differences.append(Difference(RULES["COMBINED_TYPE_EXTENDED" if extended else "COMBINED_TYPE_CHANGED"]))
        if not extended:
            return differences
    if len(before) < len(after):
        differences.append(
            Difference(RULES["PRODUCT_TYPE_EXTENDED" if new.criterion == "allOf" else "SUM_TYPE_EXTENDED"])
        )
    elif len(before) > len(after):
        differences.append(
            Difference(RULES["PRODUCT_TYPE_NARROWED" if old.criterion == "allOf" else "SUM_TYPE_NARROWED"])
        )
    fitting: list[list[int]] = []
    for index, old_part in enumerate(before):
        fitting.append([])
        for number, new_part in enumerate(after):
            found = yield Ask(old_part, new_part, (old.criterion, str(index)))
            if _fine(found, lenient):
                fitting[-1].append(number)
    if most_pairs(fitting) < min(len(before), len(after)):
        differences.append(Difference(RULES["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]))
    return differences


def _annotations(old: SchemaPart, new: SchemaPart) -> Iterator[Difference]:
    for keys, rule in _ANNOTATIONS:
        before, after = ([part.of.get(key) for key in keys] for part in (old, new))
        if before != after:
            yield Difference(RULES[rule])


def _strings(old: SchemaPart, new: SchemaPart) -> Iterator[Difference]:
    yield from limits(old.of, new.of, _LENGTHS)
    before, after = old.of.get("pattern"), new.of.get("pattern")
    if before != after:
        what = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
        yield Difference(RULES[f"PATTERN_{what}"], ("pattern",))


def _numbers(old: SchemaPart, new: SchemaPart) -> Iterator[Difference]:
    yield from limits(old.of, new.of, _BOUNDS)
    for key, beside in (("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")):
        name = "EXCLUSIVE_MAXIMUM" if beside == "maximum" else "EXCLUSIVE_MINIMUM"
        yield from limit(_exclusive(old.of, key, beside), _exclusive(new.of, key, beside), key, name)
    before, after = _decimal(old.of.get("multipleOf")), _decimal(new.of.get("multipleOf"))
    if before != after:
        yield Difference(RULES[f"MULTIPLE_OF_{_multiples(before, after)}"], ("multipleOf",))
    if old.integer != new.integer:
        yield Difference(RULES["TYPE_EXTENDED" if old.integer else "TYPE_NARROWED"])


def _exclusive(of: Any, key: str, beside: str) -> Json:
    """The limit itself from draft 6 on; in draft 4 true, which makes the other limit exclusive."""
    value = of.get(key)
    if isinstance(value, bool):
        return of.get(beside) if value else None
    return value


def _multiples(before: Decimal | None, after: Decimal | None) -> str:
    if before is None:
        return "ADDED"
    if after is None:
        return "REMOVED"
    try:
        if before and after % before == 0:
            return "EXPANDED"
        if after and before % after == 0:
            return "REDUCED"
    except InvalidOperation:  # a quotient of more digits than decimals have
        pass
    return "CHANGED"


def _decimal(value: Json) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def _enums(old: SchemaPart, new: SchemaPart) -> Iterator[Difference]:
    before, after = ({_frozen(value) for value in part.of["enum"]} for part in (old, new))
    if before != after:
        what = "EXTENDED" if after > before else "NARROWED" if after < before else "CHANGED"
        yield Difference(RULES[f"ENUM_ARRAY_{what}"], ("enum",))


def _frozen(value: Json) -> Hashable:
    """A value of JSON as one that has a hash; 1 and 1.0 are one number, true is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return dumps(value, sort_keys=True)


def _both_bytes(old: SchemaPart, new: SchemaPart) -> bool:
    """Kafka Connect's converter writes bytes under several types; they read each other (Confluent's exception)."""
    return old.of.get("connect.type") == new.of.get("connect.type") == "bytes"


def most_pairs(fitting: Sequence[Sequence[int]]) -> int:
    """How many of one schema's alternatives have a partner of their own among the other's.

    The size of a largest matching of a bipartite graph: `fitting[i]` lists the partners that i may have.
    Augmenting paths, breadth first: O(nodes x edges), no recursion.
    """
    partner: dict[int, int] = {}  # {right: left}
    matched = 0
    for start in range(len(fitting)):
        came_from: dict[int, int] = {}  # {right: the left that reached it}
        queue = [start]
        end: int | None = None
        for left in queue:
            for right in fitting[left]:
                if right in came_from:
                    continue
                came_from[right] = left
                if right not in partner:
                    end = right
                    break
                queue.append(partner[right])
            if end is not None:
                break
        if end is None:
            continue
        matched += 1
        previous = {left: right for right, left in partner.items()}
        step: int | None = end
        while step is not None:
            left = came_from[step]
            partner[step], step = left, previous.get(left)
    return matched
