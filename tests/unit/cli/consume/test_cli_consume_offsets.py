"""Where consume starts and stops."""

from itertools import islice

import pytest

from tidelog.cli.consume.offsets import Anchor, Span, parse_span, pauses, starting_offset, starting_offsets


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], Span(Anchor.BEGINNING)),
        (["beginning"], Span(Anchor.BEGINNING)),
        (["earliest"], Span(Anchor.BEGINNING)),
        (["end"], Span(Anchor.END)),
        (["latest"], Span(Anchor.END)),
        (["42"], Span(Anchor.OFFSET, 42)),
        (["0"], Span(Anchor.OFFSET, 0)),
        (["-10"], Span(Anchor.LAST, 10)),
        (["s@1700"], Span(Anchor.TIME, 1700)),
        (["e@1800"], Span(Anchor.BEGINNING, 0, 1800)),
        (["s@1700", "e@1800"], Span(Anchor.TIME, 1700, 1800)),
        (["e@1800", "-3"], Span(Anchor.LAST, 3, 1800)),
    ],
)
def test_positions(texts, expected):
    assert parse_span(texts) == expected


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["begin"], "'begin' is no position"),
        ([""], "'' is no position"),
        (["1.5"], "'1.5' is no position"),
        (["s@"], "'s@' is no position"),
        (["s@-5"], "is no position"),
        (["stored"], "needs a consumer group: with --group .* leave -o out"),
        (["1", "2"], "one start"),
        (["e@1", "e@2"], "one start and one stop"),
    ],
)
def test_what_is_no_position(texts, why):
    with pytest.raises(ValueError, match=why):
        parse_span(texts)


@pytest.mark.parametrize(
    ("span", "at_time", "expected"),
    [
        (Span(Anchor.BEGINNING), None, 10),
        (Span(Anchor.END), None, 20),
        (Span(Anchor.OFFSET, 15), None, 15),
        (Span(Anchor.OFFSET, 99), None, 99),
        (Span(Anchor.LAST, 3), None, 17),
        (Span(Anchor.LAST, 0), None, 20),
        (Span(Anchor.LAST, 999), None, 10),
        (Span(Anchor.TIME, 5), 13, 13),
        (Span(Anchor.TIME, 5), None, 20),
    ],
)
def test_start_in_a_partition_with_offsets_10_to_20(span, at_time, expected):
    assert starting_offset(span, 10, 20, at_time) == expected


def test_each_partition_starts_by_its_own_offsets():
    assert starting_offsets(Span(Anchor.LAST, 2), {0: (0, 5), 1: (0, 1)}, {}) == {0: 3, 1: 0}
    assert starting_offsets(Span(Anchor.TIME, 9), {0: (0, 5), 1: (0, 1)}, {0: 4, 1: None}) == {0: 4, 1: 1}


def test_pauses_grow_up_to_a_fifth_of_a_second():
    waits = list(islice(pauses(), 20))
    assert waits == sorted(waits)
    assert waits[0] == 0.005
    assert waits[-1] == 0.2
