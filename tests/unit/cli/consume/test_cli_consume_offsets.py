"""Where consume starts and stops."""

import pytest

from tidelog.cli.consume.offsets import Span, parse_span, starting_offset


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], Span("beginning")),
        (["beginning"], Span("beginning")),
        (["earliest"], Span("beginning")),
        (["end"], Span("end")),
        (["latest"], Span("end")),
        (["42"], Span("offset", 42)),
        (["0"], Span("offset", 0)),
        (["-10"], Span("last", 10)),
        (["s@1700"], Span("time", 1700)),
        (["e@1800"], Span("beginning", 0, 1800)),
        (["s@1700", "e@1800"], Span("time", 1700, 1800)),
        (["e@1800", "-3"], Span("last", 3, 1800)),
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
        (Span("beginning"), None, 10),
        (Span("end"), None, 20),
        (Span("offset", 15), None, 15),
        (Span("offset", 99), None, 99),
        (Span("last", 3), None, 17),
        (Span("last", 0), None, 20),
        (Span("last", 999), None, 10),
        (Span("time", 5), 13, 13),
        (Span("time", 5), None, 20),
    ],
)
def test_start_in_a_partition_with_offsets_10_to_20(span, at_time, expected):
    assert starting_offset(span, 10, 20, at_time) == expected
