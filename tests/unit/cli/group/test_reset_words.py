"""The words that say which offsets `tidelog group reset-offsets` sets, and to what."""

import pytest

from tidelog.cli.group.options import (
    export_lines,
    parse_datetime_ms,
    parse_duration_ms,
    parse_offsets_file,
    parse_scope,
)


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
