"""SimpleDateFormat's patterns: what Java writes and reads in UTC."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.connect.transforms.date_patterns import DatePattern

# 1970-01-02 00:00:01.234, Kafka's own; and 2017-01-03 06:30:01.864, a Tuesday.
SECOND_DAY, TUESDAY = 86_401_234, 1_483_425_001_864

BOTH_WAYS = [
    ("yyyy MM dd HH mm ss SSS z", SECOND_DAY, "1970 01 02 00 00 01 234 UTC"),
    ("yyyyMMdd", 1_483_401_600_000, "20170103"),
    ("yyyyMMddHHmmssSSS", TUESDAY, "20170103063001864"),
    ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", TUESDAY, "2017-01-03T06:30:01.864Z"),
    ("yyyy-MM-dd'T'HH:mm:ss.SSSZ", TUESDAY, "2017-01-03T06:30:01.864+0000"),
    ("EEE, d MMM yyyy HH:mm:ss.SSS", TUESDAY, "Tue, 3 Jan 2017 06:30:01.864"),
    ("EEEE, MMMM d, yyyy h:mm:ss.SSS a", TUESDAY + 43_200_000, "Tuesday, January 3, 2017 6:30:01.864 PM"),
    ("yy-M-d H:m:s.S", TUESDAY, "17-1-3 6:30:1.864"),
    ("yyyy.DDD k:mm:ss.SSS", TUESDAY - 6 * 3_600_000, "2017.003 24:30:01.864"),
    ("hh 'o''clock' a, zzzz yyyyMMdd", 1_483_405_200_000, "01 o'clock AM, Coordinated Universal Time 20170103"),
    ("G yyyy-MM-dd''K:mm a", 1_483_401_600_000 + 43_200_000, "AD 2017-01-03'0:00 PM"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "epoch_ms", "text"), BOTH_WAYS)
def test_written_and_read(pattern, epoch_ms, text):
    assert DatePattern(pattern).format(epoch_ms) == text
    assert DatePattern(pattern).parse(text) == epoch_ms


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("YYYY-'W'ww u F W", "2017-W01 2 1 1"),
        ("YYYY-ww", "2017-01"),
    ],
)
def test_fields_of_weeks_are_those_of_the_us(pattern, text):
    assert DatePattern(pattern).format(TUESDAY) == text


def test_the_week_with_new_year_is_the_new_years():
    assert DatePattern("YYYY ww").format(1_514_678_400_000) == "2018 01"  # Sunday, 2017-12-31


@pytest.mark.parametrize(
    ("pattern", "text", "epoch_ms"),
    [
        # Lenient: the 13th month is the next year's first, the 32nd of January is the 1st of February.
        ("yyyy-MM-dd", "2016-13-03", 1_483_401_600_000),
        ("yyyy-MM-dd", "2016-12-34", 1_483_401_600_000),
        # S counts milliseconds: six digits are minutes, as in Java.
        ("s.S", "1.123456", 124_456),
        # What follows the last field is ignored.
        ("yyyy-MM-dd", "2017-01-03T06:30:01", 1_483_401_600_000),
        ("HH:mm z", "02:00 CET", 3_600_000),
        ("HH:mm z", "02:00 GMT+01:00", 3_600_000),
        ("HH:mm Z", "02:00 +0130", 1_800_000),
        ("HH:mmX", "02:00-02", 4 * 3_600_000),
        ("HH:mmXX", "02:00+0200", 0),
        ("yy", "45", 2_366_841_600_000),
        ("yy", "46", -757_382_400_000),
    ],
)
def test_read_only(pattern, text, epoch_ms):
    assert DatePattern(pattern, century_start=1946).parse(text) == epoch_ms


@pytest.mark.parametrize("pattern", ["bad-format", "yyyy'", "XXXX", "yyyy n"])
def test_a_pattern_that_java_refuses_is_refused(pattern):
    with pytest.raises(ValueError, match=r"pattern|quote|ISO 8601"):
        DatePattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"), [("yyyy-MM-dd", "2017/01/03"), ("yyyy", ""), ("yyyy-MM-dd HH", "2017-01-03")]
)
def test_a_text_that_does_not_match_is_refused(pattern, text):
    with pytest.raises(ValueError, match="does not match the pattern"):
        DatePattern(pattern).parse(text)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_every_instant_is_read_as_it_was_written(epoch_ms):
    pattern = DatePattern("yyyy-MM-dd'T'HH:mm:ss.SSSX")
    assert pattern.parse(pattern.format(epoch_ms)) == epoch_ms
