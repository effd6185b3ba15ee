"""A list whose first values are made of a table's rows: to its readers a list like others."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.state.lazy_list import LazyList


def lazy(old: int, newer: int) -> tuple[LazyList[str], list[str]]:
    """A list of rows in falling order and of newer values, and what it must look like."""
    found = LazyList(np.arange(old - 1, -1, -1), lambda rows: [f"row {i}" for i in rows.tolist()])
    found.extend(f"new {i}" for i in range(newer))
    return found, [f"row {i}" for i in range(old - 1, -1, -1)] + [f"new {i}" for i in range(newer)]


SIZES = st.integers(0, 6)
PLACES = st.none() | st.integers(-15, 15)


@given(SIZES, SIZES, PLACES, PLACES, st.none() | st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_slices(old: int, newer: int, start: int | None, stop: int | None, step: int | None) -> None:
    found, like = lazy(old, newer)
    assert found[start:stop:step] == like[start:stop:step]


@given(SIZES, SIZES)
def test_what_else_a_list_does(old: int, newer: int) -> None:
    found, like = lazy(old, newer)
    assert (len(found), list(found), bool(found), list(reversed(found))) == (
        len(like),
        like,
        bool(like),
        like[::-1],
    )
    assert found == like
    assert like == found
    assert found != [*like, "more"]
    assert [found[i] for i in range(-len(like), len(like))] == like + like
    for outside in (len(like), -len(like) - 1):
        with pytest.raises(IndexError):
            found[outside]


def test_only_what_is_asked_for_is_made() -> None:
    made: list[int] = []

    def make(rows: Any) -> list[int]:
        made.extend(rows.tolist())
        return list(rows.tolist())

    found = LazyList(np.arange(100_000), make)
    found.extend([-1])
    assert (found[-1], found[70_000], found[10:12]) == (-1, 70_000, [10, 11])
    assert made == [70_000, 10, 11]
