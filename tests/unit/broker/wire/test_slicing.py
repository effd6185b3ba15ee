"""Large requests in slices: they are all of the request, in its order, and their answers are one again."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from kio.index import load_request_schema
from support.strange_requests import arrays_of, large

from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.errors import MalformedRequestError
from tidelog.broker.wire.slicing import DEPTHS, MOST_WHOLE, SLICE, TAKEN_WHOLE, is_large, joined, sliced

PATHS = [
    (key, versions.last, path)
    for key, versions in OFFERED.items()
    for path in arrays_of(load_request_schema(key, versions.last))
]


@pytest.mark.parametrize(("key", "version", "path"), PATHS, ids=lambda one: getattr(one, "name", str(one)))
def test_every_large_request_is_sliced_or_bounded(key: ApiKey, version: int, path: tuple[str, ...]) -> None:
    body = large(load_request_schema(key, version), path, 2_003)
    slices = sliced(key, body)
    if len(path) > DEPTHS.get(key, 0):
        assert slices == [body]
        more = large(load_request_schema(key, version), path, MOST_WHOLE + 1)
        if key in TAKEN_WHOLE:
            assert sliced(key, more) == [more]
        else:
            with pytest.raises(MalformedRequestError, match="belong together"):
                sliced(key, more)
        return
    found: list[Any] = []
    for one in slices:
        array = one
        for name in path:
            (array,) = (getattr(array[0] if isinstance(array, tuple) else array, name),)
        assert 0 < len(array) <= SLICE
        found += array
    whole: Any = body
    for name in path:
        whole = getattr(whole[0] if isinstance(whole, tuple) else whole, name)
    assert tuple(found) == whole


@dataclass(frozen=True)
class Leaf:
    number: int


@dataclass(frozen=True)
class TwoArrays:
    topics: tuple[Leaf, ...]
    beside: tuple[Leaf, ...]


def test_what_each_slice_would_repeat_is_refused_by_the_bound_that_it_passes() -> None:
    beside = tuple(map(Leaf, range(SLICE + 1)))
    body = TwoArrays(tuple(map(Leaf, range(2 * SLICE))), beside)
    with pytest.raises(
        MalformedRequestError, match=f"has {SLICE + 1} elements that belong together, more than {SLICE}$"
    ):
        sliced(ApiKey.LIST_OFFSETS, body)
    fits = replace(body, beside=beside[:SLICE])
    assert [(len(one.topics), len(one.beside)) for one in sliced(ApiKey.LIST_OFFSETS, fits)] == [(SLICE, SLICE)] * 2


def test_answers_of_slices_are_one_again() -> None:
    def topic(name: str, *partitions: int) -> dict[str, Any]:
        return {"name": name, "partitions": [{"partition_index": p, "error_code": 0} for p in partitions]}

    answers = [{"topics": [topic("a", 0), topic("b", 0, 1)]}, {"topics": [topic("b", 2), topic("b", 9)]}]
    answers.append({"topics": [topic("b", 10), topic("c", 0)]})
    assert joined(ApiKey.LIST_OFFSETS, answers) == {
        "topics": [topic("a", 0), topic("b", 0, 1, 2), topic("b", 9, 10), topic("c", 0)]
    }
    assert answers[0]["topics"][1] == topic("b", 0, 1)


def test_what_is_not_sliced_within_is_not_put_together() -> None:
    group = {"group_id": "g", "members": [{"member_id": "m"}]}
    answers = [{"groups": [group], "throttle_time": 0}, {"groups": [group], "throttle_time": 0}]
    assert joined(ApiKey.DESCRIBE_GROUPS, answers) == {"groups": [group, group], "throttle_time": 0}


def test_an_error_of_a_slice_is_one_of_all() -> None:
    answers = [{"error_code": 0, "topics": []}, {"error_code": 16, "topics": []}, {"error_code": 25, "topics": []}]
    assert joined(ApiKey.OFFSET_DELETE, answers) == {"error_code": 16, "topics": []}


def test_offsets_of_groups_are_joined_at_every_level() -> None:
    def group(*partitions: int) -> dict[str, Any]:
        topics = [{"name": "t", "partitions": [{"partition_index": p} for p in partitions]}]
        return {"group_id": "g", "error_code": 0, "topics": topics}

    answers = [{"groups": [group(*range(n, n + 3))]} for n in range(0, 30, 3)]
    assert joined(ApiKey.OFFSET_FETCH, answers) == {"groups": [group(*range(30))]}


def test_large_answers() -> None:
    partitions = [{"partition_index": n, "error_code": 0} for n in range(6)]
    answer = {"topics": [{"name": "t", "partitions": partitions}], "throttle_time": 0, "text": "x" * 100}
    assert not is_large(answer, 7)
    assert is_large(answer, 6)
