"""What changed between two schemas of arrays: items by their place, all others, and limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidelog.schemas.base.comparison import Ask, Comparing, Difference
from tidelog.schemas.base.json_text import Json
from tidelog.schemas.json_schema.document import PartShape, SchemaPart
from tidelog.schemas.json_schema.limits import limits
from tidelog.schemas.json_schema.objects import compare_beside, compare_unevaluated, covered
from tidelog.schemas.json_schema.rules import RULES

_COUNTS = (
    ("maxItems", "MAX_ITEMS"),
    ("minItems", "MIN_ITEMS"),
    ("maxContains", "MAX_CONTAINS"),
    ("minContains", "MIN_CONTAINS"),
)


@dataclass(frozen=True, slots=True)
class _Items:
    """`every`: the schema of all items; `placed`: of those at a place; `others`: of items after those."""

    part: SchemaPart
    every: Json
    placed: Sequence[Json]
    others: Json

    @classmethod
    def of(cls, part: SchemaPart) -> "_Items":
        items, prefix, others = (part.of.get(key) for key in ("items", "prefixItems", "additionalItems"))
        if isinstance(items, list):
            return cls(part, None, items, others)
        if isinstance(prefix, list):
            return cls(part, None, prefix, items)
        if part.document.draft >= 2019 and isinstance(items, bool):
            return cls(part, None, (), items)
        return cls(part, items, (), others)

    def is_open(self) -> bool:
        if self.others is False or isinstance(self.others, Mapping):
            return False
        unevaluated = self.part.of.get("unevaluatedItems")
        return unevaluated is None or self.part.child(unevaluated).shape is PartShape.ANYTHING

    def beside(self) -> Json:
        """The schema that an item without a place of its own must fit; None where there is none."""
        if isinstance(self.others, Mapping):
            return self.others
        unevaluated = self.part.of.get("unevaluatedItems")
        if self.others is not False and isinstance(unevaluated, Mapping):
            return None if self.part.child(unevaluated).shape is PartShape.ANYTHING else unevaluated
        return None


def compare_arrays(old: SchemaPart, new: SchemaPart, lenient: bool) -> Comparing[SchemaPart]:
    """The differences of two schemas of arrays."""
    before, after = _Items.of(old), _Items.of(new)
    differences = [*limits(old.of, new.of, _COUNTS), *_unique(old, new)]
    if before.every is not None and after.every is not None:
        differences += yield Ask(old.child(before.every), new.child(after.every), ("items",))
    elif before.every is not None or after.every is not None:
        rule = "SCHEMA_ADDED" if before.every is None else "SCHEMA_REMOVED"
        differences.append(Difference(RULES[rule], ("items",)))
    for index in range(max(len(before.placed), len(after.placed))):
        path = ("items", str(index))
        if index >= len(after.placed):
            differences += yield from _compare_removed(before, after, path, lenient)
        elif index >= len(before.placed):
            differences += yield from _compare_added(before, after, path, lenient)
        else:
            differences += yield Ask(old.child(before.placed[index]), new.child(after.placed[index]), path)
    differences += yield from compare_beside(
        old, new, before.others, after.others, "additionalItems", "ADDITIONAL_ITEMS"
    )
    differences += yield from compare_unevaluated(old, new, "unevaluatedItems", "UNEVALUATED_ITEMS")
    return differences


def _compare_removed(before: _Items, after: _Items, path: tuple[str, ...], lenient: bool) -> Comparing[SchemaPart]:
    removed = before.part.child(before.placed[int(path[-1])])
    if after.is_open():
        return (Difference(RULES["ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL"], path),)
    beside = after.beside()
    if beside is not None:
        found = yield Ask(removed, after.part.child(beside), path)
        return [*found, covered(found, "ITEM_REMOVED", path, lenient)]
    nothing = removed.shape is PartShape.NOTHING
    rule = f"ITEM_{'WITH_FALSE_' if nothing else ''}REMOVED_FROM_CLOSED_CONTENT_MODEL"
    return (Difference(RULES[rule], path),)


def _compare_added(before: _Items, after: _Items, path: tuple[str, ...], lenient: bool) -> Comparing[SchemaPart]:
    added = after.part.child(after.placed[int(path[-1])])
    if before.is_open():
        anything = added.shape is PartShape.ANYTHING
        rule = f"ITEM_{'WITH_EMPTY_SCHEMA_' if anything else ''}ADDED_TO_OPEN_CONTENT_MODEL"
        return (Difference(RULES[rule], path),)
    beside = before.beside()
    if beside is not None:
        found = yield Ask(before.part.child(beside), added, path)
        return [*found, covered(found, "ITEM_ADDED", path, lenient)]
    return (Difference(RULES["ITEM_ADDED_TO_CLOSED_CONTENT_MODEL"], path),)


def _unique(old: SchemaPart, new: SchemaPart) -> Iterator[Difference]:
    before, after = (part.of.get("uniqueItems") is True for part in (old, new))
    if before != after:
        yield Difference(RULES[f"UNIQUE_ITEMS_{'REMOVED' if before else 'ADDED'}"], ("uniqueItems",))
