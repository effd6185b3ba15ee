"""Where `tidelog group reset-offsets` sets offsets to: the plan, and the words that ask for it."""

import pytest

from tidelog.operations.offset_resets import (
    Reset,
    Scenario,
    Standing,
    export_lines,
    parse_datetime_ms,
    parse_duration_ms,
    parse_offsets_file,
    parse_scope,
    plan_reset,
)

PLACE = ("t", 0)
# offsets:  0 ... [10 ........ 20)   committed: 15, or what the row says
AT_15 = Standing(10, 20, 15)
NEVER = Standing(10, 20)
BEFORE = Standing(10, 20, 3)
EMPTY = Standing(10, 10, 10)


@pytest.mark.parametrize(
    ("scenario", "standing", "offset", "noted"),
    [
        (Scenario("earliest"), AT_15, 10, ""),
        (Scenario("latest"), AT_15, 20, ""),
        (Scenario("current"), AT_15, 15, ""),
        (Scenario("current"), NEVER, 20, "no committed offset"),
        (Scenario("current"), BEFORE, 10, "begins at offset 10"),
        (Scenario("offset", 12), AT_15, 12, ""),
        (Scenario("offset", 9), AT_15, 10, "begins at offset 10: 9 is before it"),
        (Scenario("offset", 20), AT_15, 20, ""),
        (Scenario("offset", 21), AT_15, 20, "ends at offset 20: 21 is behind it"),
        (Scenario("offset", 0), EMPTY, 10, "begins"),
        (Scenario("shift", 4), AT_15, 19, ""),
        (Scenario("shift", -4), AT_15, 11, ""),
        (Scenario("shift", -6), AT_15, 10, "begins"),
        (Scenario("shift", 6), AT_15, 20, "ends"),
        (Scenario("time", 1), Standing(10, 20, 15, 13), 13, ""),
        (Scenario("time", 1), AT_15, 20, "no record at or after that time"),
        (Scenario("file", offsets={PLACE: 17}), AT_15, 17, ""),
        (Scenario("file", offsets={PLACE: 5}), AT_15, 10, "begins"),
    ],
)
def test_where_an_offset_goes(scenario, standing, offset, noted):
    reset = plan_reset(scenario, {PLACE: standing})[PLACE]
    assert reset.offset == offset
    assert noted in reset.note
    assert bool(noted) == bool(reset.note)


def test_nothing_is_shifted_from_nowhere():
    with pytest.raises(ValueError, match="Partition 0 of t has no committed offset"):
        plan_reset(Scenario("shift", 1), {PLACE: NEVER})


def test_a_plan_goes_by_topic_and_partition():
    plan = plan_reset(Scenario("earliest"), {("u", 0): NEVER, ("t", 10): NEVER, ("t", 2): NEVER})
    assert list(plan) == [("t", 2), ("t", 10), ("u", 0)]
    assert plan["u", 0] == Reset(10)


@pytest.mark.parametrize(
    ("texts", "scope"),
    [
        (["t"], {"t": None}),
        (["t:0,2", "u"], {"t": frozenset({0, 2}), "u": None}),
        ([" a.b_c-1:7 "], {"a.b_c-1": frozenset({7})}),
    ],
)
def test_scopes(texts, scope):
    assert parse_scope(texts) == scope


@pytest.mark.parametrize("texts", [["t:"], ["t:x"], [":1"], ["t:1,"], ["t u"], ["t", "t:1"], [""]])
def test_scopes_that_are_none(texts):
    with pytest.raises(ValueError, match=r"no topic|twice"):
        parse_scope(texts)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:01.500", 1_500),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:00Z", 0),
        ("2026-01-31T12:00:00.000", 1_769_860_800_000),
    ],
)
def test_times(text, ms):
    assert parse_datetime_ms(text) == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [("PT10S", 10_000), ("P1D", 86_400_000), ("P1DT2H3M4S", 93_784_000), ("PT0.5S", 500), ("PT90M", 5_400_000)],
)
def test_durations(text, ms):
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "PT1X", "-PT1H", "P1W"])
def test_durations_that_are_none(text):
    with pytest.raises(ValueError, match="no duration"):
        parse_duration_ms(text)


def test_times_that_are_none():
    with pytest.raises(ValueError, match="no time"):
        parse_datetime_ms("yesterday")


def test_an_export_can_be_read_again():
    offsets = {("t", 0): 5, ("u", 3): 0}
    text = export_lines("g", offsets.items())
    assert text == "g,t,0,5\ng,u,3,0\n"
    assert parse_offsets_file(text, "g") == offsets
    assert parse_offsets_file('"t",0,5\n\n u , 3 , 0\n', "g") == offsets


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no offset"),
        ("h,t,0,5", "line 1 is about group 'h', not 'g'"),
        ("t,0", "line 1 is not of the form"),
        ("t,0,5\nt,0,6", "line 2 names partition 0 of t a second time"),
        ("t,0,-1", "line 1 is not of the form"),
        (",0,5", "line 1 is not of the form"),
    ],
)
def test_files_that_cannot_be_used(text, why):
    with pytest.raises(ValueError, match=why):
        parse_offsets_file(text, "g")
