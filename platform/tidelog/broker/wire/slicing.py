"""Large requests in slices, each a request of its own, whose answers are put together again.

A handler goes through what a client lists without a pause. So no handler is given more than a slice at once, and other
clients are answered between one slice and the next. What a request must decide as a whole is not sliced, but bounded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import MalformedRequestError

# The elements of a slice.
SLICE: Final = 250
# The most elements of what is not sliced: of a request, or of one thing in it. Kafka has as many records for one
# request of administration (`QuorumController.MAX_RECORDS_PER_USER_OP`).
MOST_WHOLE: Final = 10_000
# {API: how deep its arrays are sliced}. The partitions of a topic are independent of each other, the configuration
# keys of a topic are not.
DEPTHS: Final[Mapping[ApiKey, int]] = {
    ApiKey.LIST_OFFSETS: 2,
    ApiKey.OFFSET_COMMIT: 2,
    ApiKey.OFFSET_FETCH: 3,
    ApiKey.FIND_COORDINATOR: 1,
    ApiKey.DESCRIBE_GROUPS: 1,
    ApiKey.CREATE_TOPICS: 1,
    ApiKey.DELETE_TOPICS: 1,
    ApiKey.DELETE_RECORDS: 2,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
    ApiKey.WRITE_TXN_MARKERS: 1,
    ApiKey.TXN_OFFSET_COMMIT: 2,
    ApiKey.CREATE_ACLS: 1,
    ApiKey.DELETE_ACLS: 1,
    ApiKey.DESCRIBE_CONFIGS: 1,
    ApiKey.ALTER_CONFIGS: 1,
    ApiKey.CREATE_PARTITIONS: 1,
    ApiKey.DELETE_GROUPS: 1,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.OFFSET_DELETE: 2,
    ApiKey.ALTER_CLIENT_QUOTAS: 1,
    ApiKey.DESCRIBE_PRODUCERS: 2,
    ApiKey.DESCRIBE_TRANSACTIONS: 1,
}
# Their handlers take requests of any size, and give others their turn by themselves.
TAKEN_WHOLE: Final = frozenset({ApiKey.FETCH, ApiKey.METADATA})


def sliced(key: ApiKey, body: Any) -> Sequence[Any]:
    """A large request as requests of up to `SLICE` elements, in order. Raises `MalformedRequestError`."""
    if key in TAKEN_WHOLE:
        return [body]
    return list(_slices(body, DEPTHS.get(key, 0)))


def joined(key: ApiKey, answers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The answer of a request whose slices have these answers, in the same order."""
    failed = next((one for one in answers if one.get("error_code")), answers[0])
    lists = {name for name, value in answers[0].items() if _is_list(value)}
    whole = {name: value for name, value in failed.items() if name not in lists}
    return whole | {name: _chained([one.get(name) for one in answers], DEPTHS[key]) for name in lists}


def is_large(answer: Mapping[str, Any], most: int) -> bool:
    """Whether an answer has more than `most` elements; it counts no further."""
    left = most
    open_: list[Any] = [answer]
    while open_:
        for value in open_.pop().values():
            if not value or not _is_list(value):
                continue
            left -= len(value)
            if left < 0:
                return True
            if isinstance(value[0], Mapping):
                open_ += value
    return False


def _slices(entity: Any, depth: int) -> Iterator[Any]:
    weights = {f.name: _weight(getattr(entity, f.name)) for f in fields(entity)}
    total = sum(weights.values())
    if total <= SLICE:
        yield entity
        return
    sliced_field = max(weights, key=lambda name: weights[name])
    around = total if depth == 0 else total - weights[sliced_field]
    most = MOST_WHOLE if depth == 0 else SLICE
    if around > most:
        raise MalformedRequestError(f"a part of it has {around} elements that belong together, more than {most}")
    if depth == 0:
        yield entity
        return
    for part in _parts(getattr(entity, sliced_field), depth - 1):
        yield replace(entity, **{sliced_field: part})


def _parts(elements: tuple[Any, ...], depth: int) -> Iterator[tuple[Any, ...]]:
    """An array as arrays of up to `SLICE` elements; what is larger, and can't be sliced, stands alone."""
    if not is_dataclass(elements[0]):
        for start in range(0, len(elements), SLICE):
            yield elements[start : start + SLICE]
        return
    part: list[Any] = []
    weight = 0
    for element in elements:
        own = _weight(element)
        if part and weight + own > SLICE:
            yield tuple(part)
            part, weight = [], 0
        if own > SLICE:
            for one in _slices(element, depth):
                yield (one,)
        else:
            part.append(element)
            weight += own
    if part:
        yield tuple(part)


def _weight(value: Any) -> int:
    """How many elements there are in a value, and it is one itself if it is an entity."""
    if isinstance(value, tuple):
        return sum(map(_weight, value)) if value and is_dataclass(value[0]) else len(value)
    if is_dataclass(value):
        return 1 + sum(_weight(getattr(value, name)) for name in _tuples(type(value)))
    return 0


def _tuples(schema: Any) -> Sequence[str]:
    names = _TUPLES.get(schema)
    if names is None:
        names = _TUPLES[schema] = [f.name for f in fields(schema) if "tuple[" in str(f.type)]
    return names


_TUPLES: Final[dict[Any, Sequence[str]]] = {}


class _Element(dict[str, Any]):
    """An element that slices have in common, put together here."""


def _chained(lists: Sequence[Sequence[Any] | None], depth: int) -> Sequence[Any] | None:
    """The lists, one behind the other. What was sliced within an element is one element again."""
    whole: list[Any] = []
    for part in lists:
        if part is None:
            return None
        _append(whole, part, depth)
    return whole


def _append(whole: list[Any], more: Sequence[Any], depth: int) -> None:
    if depth > 1 and whole and more and (nested := _nested(whole[-1], more[0])):
        last = whole[-1]
        if not isinstance(last, _Element):
            last = whole[-1] = _Element(last | {name: list(last[name]) for name in nested})
        for name in nested:
            _append(last[name], more[0][name], depth - 1)
        more = more[1:]
    whole += more


def _nested(element: Mapping[str, Any], other: Mapping[str, Any]) -> Sequence[str]:
    """The names of the lists in which two elements differ only; none where they differ in more."""
    names = [name for name, value in element.items() if _is_list(value)]
    same = element.keys() == other.keys() and all(element[name] == other[name] for name in element if name not in names)
    return names if same else ()


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
