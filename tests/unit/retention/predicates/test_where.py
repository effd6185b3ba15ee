"""Conditions on records: what a text says, which records it means, and which times it leaves out."""

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.retention.predicates.parse import MOST_CHARACTERS, MOST_DEPTH, InvalidConditionError, parse_where
from tidelog.retention.predicates.where import HeaderValue

T0_MS = 1_764_320_400_000  # 2025-11-28T09:00:00Z
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch() -> pa.RecordBatch:
    """Five records, a second apart: with one header, several, an empty list, none, and a null value."""
    return pa.RecordBatch.from_pydict(
        {
            "position": [0, 1, 2, 3, 4],
            "key": pa.array([b"a", b"b", b"test-1", None, b"\x00\xff"], pa.binary()),
            "headers": pa.array(
                [
                    [("deploy", b"42")],
                    [("deploy", b"41"), ("x", b"1"), ("deploy", b"42")],
                    [],
                    None,
                    [("deploy", None)],
                ],
                HEADERS,
            ),
            "timestamp": pa.array([(T0_MS + 1000 * n) * 1000 for n in range(5)], pa.timestamp("us", tz="UTC")),
        }
    )


def meant(text: str, records: pa.RecordBatch | None = None) -> list[int]:
    where = pickle.loads(pickle.dumps(parse_where(text)))
    records = batch() if records is None else records
    only = records.select(sorted(where.columns))
    found = where.of(only).to_pylist()
    return [p for p, value in zip(records.column("position").to_pylist(), found, strict=True) if value]


@pytest.mark.parametrize(
    ("text", "positions"),
    [
        ("key = 'a'", [0]),
        ("key != 'a'", [1, 2, 4]),
        ("key <> 'a' and key <= 'b'", [1, 4]),
        ("KEY IN ('a', 'b', 'c')", [0, 1]),
        ("key NOT IN ('a', 'b')", [2, 3, 4]),
        ("key LIKE 'test-%'", [2]),
        ("key NOT LIKE 'test-_'", [0, 1, 4]),
        ("key IS NULL", [3]),
        ("key IS NOT NULL", [0, 1, 2, 4]),
        ("key = X'00ff'", [4]),
        ("key = '\x00\udcff'", [4]),  # bytes of a command line that are no text
        ("key LIKE X'7425' AND headers[X'78'] IS NULL", [2]),
        ("key BETWEEN 'a' AND 'c'", [0, 1]),
        ("headers['deploy'] = '42'", [0, 1]),  # of several of a name the last one counts
        ("headers['deploy'] = '41'", []),
        ("headers['deploy'] != '42'", []),
        ("headers['deploy'] IS NULL", [2, 3, 4]),
        ("headers['x'] = '1' OR key = 'a'", [0, 1]),
        ("NOT (headers['deploy'] = '42')", []),
        ("NOT key IS NULL AND headers['deploy'] IS NULL", [2, 4]),
        (f"timestamp >= {T0_MS + 3000}", [3, 4]),
        ("timestamp < '2025-11-28T09:00:01Z'", [0]),
        ("timestamp = '2025-11-28T10:00:02+01:00'", [2]),
        ("timestamp BETWEEN '2025-11-28T09:00:01' AND '2025-11-28T09:00:02'", [1, 2]),
        (f"timestamp IN ({T0_MS}, {T0_MS + 1000}) AND headers['x'] IS NOT NULL", [1]),
        ("key = 'it''s' OR (key = 'a' AND (timestamp > 0))", [0]),
    ],
)
def test_which_records_are_meant(text: str, positions: list[int]) -> None:
    assert meant(text) == positions
    # A slice of a batch has its lists elsewhere.
    assert meant(text, batch().slice(1, 3)) == [p for p in positions if 1 <= p <= 3]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "key, headers"),
        ("value = 'x'", "key, headers"),
        ("key", "a comparison is expected"),
        ("key = ", "a text is expected"),
        ("key = 7", "a text is expected"),
        ("timestamp = 'soon'", "a time such as"),
        (f"timestamp = {10**30}", "year 9999"),
        ("timestamp > " + "1" * 5_000, "year 9999"),
        ("key LIKE X'ff'", "UTF-8"),
        ("key LIKE '\udcff%'", "UTF-8"),
        ("headers[X'ff'] = 'a'", "UTF-8"),
        ("key = '\ud800'", "no text"),
        ("headers.deploy = '1'", "no word, text, number or sign"),
        ("headers['a' = '1'", "] is expected"),
        ("key = 'a' key = 'b'", "AND, OR or the end"),
        ("(key = 'a'", ") is expected"),
        ("key = X'0'", "hexadecimal"),
        ("key NOT 'a'", "IN, LIKE or BETWEEN"),
        ("timestamp LIKE '2%'", "compare it"),
        ("key = 'a", "no word, text, number or sign"),
        ("(" * (MOST_DEPTH + 2) + "key = 'a'", f"{MOST_DEPTH} parentheses"),
        ("NOT " * (MOST_DEPTH + 2) + "key = 'a'", f"{MOST_DEPTH} times NOT"),
        ("key = '" + "a" * MOST_CHARACTERS + "'", f"{MOST_CHARACTERS} characters"),
    ],
)
def test_what_is_no_condition(text: str, why: str) -> None:
    with pytest.raises(InvalidConditionError) as refusal:
        parse_where(text)
    assert why in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "low_s", "high_s", "may"),
    [
        ("timestamp >= {2}", 0, 1, False),
        ("timestamp >= {2}", 0, 2, True),
        ("timestamp > {2}", 0, 2, True),  # statistics are whole ms, rounded down
        ("timestamp < {2}", 2, 3, False),
        ("timestamp <= {2}", 2, 3, True),
        ("timestamp = {2}", 3, 4, False),
        ("timestamp != {2}", 2, 2, True),
        ("timestamp >= {1} AND timestamp < {2}", 2, 3, False),
        ("timestamp < {1} OR timestamp > {3}", 1, 2, False),
        ("timestamp < {1} OR key = 'a'", 1, 2, True),
        ("NOT timestamp < {2}", 0, 1, True),
        ("timestamp IS NULL", 0, 1, False),
        ("key = 'a' AND timestamp > {2}", 0, 1, False),
    ],
)
def test_segments_of_other_times_are_passed_over(text: str, low_s: int, high_s: int, may: bool) -> None:
    where = parse_where(text.format(*(T0_MS + 1000 * n for n in range(5))))
    assert where.may_mean(T0_MS + 1000 * low_s, T0_MS + 1000 * high_s) is may


@given(st.text(alphabet="key headrs[]='\"()<>!ANDORtimestamp0123 Xx%_", max_size=60))
def test_any_text_is_a_condition_or_refused(text: str) -> None:
    try:
        where = parse_where(text)
    except InvalidConditionError:
        return
    assert len(where.of(batch())) == 5


def test_a_batch_without_records() -> None:
    assert len(HeaderValue("deploy").of(batch().slice(0, 0))) == 0
