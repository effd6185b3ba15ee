"""What changed between two schemas of objects: properties, and content models, which say what else is accepted."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import jsonschema_rs

from tidelog.schemas.base.comparison import Ask, Comparing, Difference, Differences
from tidelog.schemas.base.json_text import Json
from tidelog.schemas.json_schema.document import PartShape, SchemaPart
from tidelog.schemas.json_schema.limits import limits
from tidelog.schemas.json_schema.rules import RULES

_SCHEMA = (Mapping, bool)
_COUNTS = (("maxProperties", "MAX_PROPERTIES"), ("minProperties", "MIN_PROPERTIES"))


def compare_objects(old: SchemaPart, new: SchemaPart, lenient: bool) -> Comparing[SchemaPart]:
    """The differences of two schemas of objects."""
    differences = [*_required(old, new), *limits(old.of, new.of, _COUNTS)]
    for name in dict.fromkeys((*_map(old, "properties"), *_map(new, "properties"))):
        differences += yield from _compare_property(old, new, name, lenient)
    differences += yield from _compare_dependencies(old, new)
    differences += yield from _compare_additional(old, new)
    differences += yield from compare_unevaluated(old, new, "unevaluatedProperties", "UNEVALUATED_PROPERTIES")
    return differences


def is_open(part: SchemaPart) -> bool:
    """Whether objects may have any property beside those that are defined."""
    if part.of.get("additionalProperties") not in (None, True) or _map(part, "patternProperties"):
        return False
    return _is_anything(part, part.of.get("unevaluatedProperties"))


def _is_anything(part: SchemaPart, schema: Json) -> bool:
    return schema is None or part.child(schema).shape is PartShape.ANYTHING


def _beside(part: SchemaPart, name: str) -> Json:
    """The schema that a property which isn't defined must fit; None where there is none."""
    for pattern, schema in _map(part, "patternProperties").items():
        if matches(pattern, name):
            return schema
    additional = part.of.get("additionalProperties")
    if isinstance(additional, Mapping):
        return additional
    unevaluated = part.of.get("unevaluatedProperties")
    if additional is not False and isinstance(unevaluated, Mapping) and not _is_anything(part, unevaluated):
        return unevaluated
    return None


def _compare_property(old: SchemaPart, new: SchemaPart, name: str, lenient: bool) -> Comparing[SchemaPart]:
    before, after = _map(old, "properties").get(name), _map(new, "properties").get(name)
    path = ("properties", name)
    if before is not None and after is not None:
        return (yield Ask(old.child(before), new.child(after), path))
    if after is None:
        assert before is not None  # one of the two has it
        if is_open(new):
            return (Difference(RULES["PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL"], path),)
        beside = _beside(new, name)
        if beside is not None:
            found = yield Ask(old.child(before), new.child(beside), path)
            return [*found, covered(found, "PROPERTY_REMOVED", path, lenient)]
        nothing = old.child(before).shape is PartShape.NOTHING
        rule = f"PROPERTY_{'WITH_FALSE_' if nothing else ''}REMOVED_FROM_CLOSED_CONTENT_MODEL"
        return (Difference(RULES[rule], path),)
    return (yield from _compare_added(old, new, name, lenient))


def _compare_added(old: SchemaPart, new: SchemaPart, name: str, lenient: bool) -> Comparing[SchemaPart]:
    after, path = _map(new, "properties")[name], ("properties", name)
    needed = _needed(new, name)
    if is_open(old):
        if new.child(after).shape is PartShape.ANYTHING:
            return (Difference(RULES["PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL"], path),)
        return (Difference(RULES[f"{needed}_ADDED_TO_OPEN_CONTENT_MODEL"], path),)
    differences: list[Difference] = []
    beside = _beside(old, name)
    if beside is not None:
        found = yield Ask(old.child(beside), new.child(after), path)
        differences += [*found, covered(found, "PROPERTY_ADDED", path, lenient)]
    differences.append(Difference(RULES[f"{needed}_ADDED_TO_UNOPEN_CONTENT_MODEL"], path))
    return differences


def covered(found: Differences, name: str, path: tuple[str, ...], lenient: bool) -> Difference:
    """Whether a partially open content model covers a property or item, by the differences that were found."""
    broken = any(one.breaking(lenient=lenient) for one in found)
    return Difference(RULES[f"{name}_{'NOT' if broken else 'IS'}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"], path)


def _needed(part: SchemaPart, name: str) -> str:
    """What the rules call a property: required, so with a default, or optional."""
    if name not in _names(part, "required"):
        return "OPTIONAL_PROPERTY"
    schema = _map(part, "properties")[name]
    with_default = isinstance(schema, Mapping) and "default" in schema
    return "REQUIRED_PROPERTY_WITH_DEFAULT" if with_default else "REQUIRED_PROPERTY"


def _required(old: SchemaPart, new: SchemaPart) -> Iterator[Difference]:
    before, after = _names(old, "required"), _names(new, "required")
    for name in _map(old, "properties"):
        if name not in _map(new, "properties") or (name in before) == (name in after):
            continue
        if name in before:
            rule = "REQUIRED_ATTRIBUTE_REMOVED"
        else:
            with_default = _needed(new, name) == "REQUIRED_PROPERTY_WITH_DEFAULT"
            rule = f"REQUIRED_ATTRIBUTE_{'WITH_DEFAULT_' if with_default else ''}ADDED"
        yield Difference(RULES[rule], ("required", name))


def _compare_dependencies(old: SchemaPart, new: SchemaPart) -> Comparing[SchemaPart]:
    differences: list[Difference] = []
    before, after = (_dependencies(part) for part in (old, new))
    for name in dict.fromkeys((*before, *after)):
        path = ("dependencies", name)
        old_dependency, new_dependency = before.get(name), after.get(name)
        for kind, types in (("ARRAY", list), ("SCHEMA", _SCHEMA)):
            has, gets = isinstance(old_dependency, types), isinstance(new_dependency, types)
            if has != gets:
                rule = f"DEPENDENCY_{kind}_{'REMOVED' if has else 'ADDED'}"
                differences.append(Difference(RULES[rule], path))
        if isinstance(old_dependency, list) and isinstance(new_dependency, list):
            differences += _listed({*old_dependency}, {*new_dependency}, path)
        elif isinstance(old_dependency, _SCHEMA) and isinstance(new_dependency, _SCHEMA):
            differences += yield Ask(old.child(old_dependency), new.child(new_dependency), path)
    return differences


def _listed(before: set[str], after: set[str], path: tuple[str, ...]) -> Iterator[Difference]:
    if before != after:
        what = "EXTENDED" if after > before else "NARROWED" if after < before else "CHANGED"
        yield Difference(RULES[f"DEPENDENCY_ARRAY_{what}"], path)


def _dependencies(part: SchemaPart) -> Mapping[str, Json]:
    return {
        name: value
        for key in ("dependencies", "dependentRequired", "dependentSchemas")
        for name, value in _map(part, key).items()
    }


def _compare_additional(old: SchemaPart, new: SchemaPart) -> Comparing[SchemaPart]:
    keys = "additionalProperties", "ADDITIONAL_PROPERTIES"
    before, after = old.of.get(keys[0]), new.of.get(keys[0])
    return (yield from compare_beside(old, new, before, after, *keys))


def compare_beside(
    old: SchemaPart, new: SchemaPart, before: Json, after: Json, key: str, name: str
) -> Comparing[SchemaPart]:
    """Differences of additionalProperties, or of additional items: none, any, or those that fit a schema."""
    if (before is False) != (after is False):
        return (Difference(RULES[f"{name}_{'ADDED' if before is False else 'REMOVED'}"], (key,)),)
    has, gets = isinstance(before, Mapping), isinstance(after, Mapping)
    if has and gets:
        return (yield Ask(old.child(before), new.child(after), (key,)))
    if has != gets:
        return (Difference(RULES[f"{name}_{'EXTENDED' if has else 'NARROWED'}"], (key,)),)
    return ()


def compare_unevaluated(old: SchemaPart, new: SchemaPart, key: str, name: str) -> Comparing[SchemaPart]:
    """Differences of unevaluatedProperties or unevaluatedItems."""
    before, after = old.of.get(key), new.of.get(key)
    if before is None and after is None:
        return ()
    shapes = [
        PartShape.ANYTHING if schema is None else part.child(schema).shape
        for part, schema in ((old, before), (new, after))
    ]
    if shapes[0] is shapes[1] and before is not None and after is not None:
        return (yield Ask(old.child(before), new.child(after), (key,)))
    if PartShape.NOTHING in shapes:
        what = "ADDED" if shapes[0] is PartShape.NOTHING else "REMOVED"
    elif after is None or shapes[1] is PartShape.ANYTHING:
        what = "EXTENDED"
    elif before is None or shapes[0] is PartShape.ANYTHING:
        what = "NARROWED"
    else:
        return (yield Ask(old.child(before), new.child(after), (key,)))
    return (Difference(RULES[f"{name}_{what}"], (key,)),)


def _map(part: SchemaPart, key: str) -> Mapping[str, Json]:
    value = part.of.get(key)
    return value if isinstance(value, Mapping) else {}


def _names(part: SchemaPart, key: str) -> Sequence[str]:
    value = part.of.get(key)
    return value if isinstance(value, list) else ()


@lru_cache(maxsize=1024)
def matches(pattern: str, name: str) -> bool:
    """Whether a pattern is found in a name; not, for patterns that need backtracking, or are none.

    It takes linear time: a pattern is the user's, and must not hang the registry.
    """
    try:
        validator = jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return validator.is_valid(name)
