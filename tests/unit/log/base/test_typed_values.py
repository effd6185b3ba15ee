"""Kinds of values: what each takes, its canonical text, and what is wrong with the rest, in the words of a dialect."""

import pytest

from tidelog.log.base.typed_values import (
    Choice,
    Flag,
    Matching,
    NameList,
    Number,
    Problem,
    Text,
    Whole,
    WrongValueError,
    hint,
    listed,
    names,
    nearest,
    reason,
)

TAKEN = [
    (Whole(1, 9), "7", 7, "7"),
    (Whole(1, 9), 7.0, 7, "7"),
    (Whole(1, 9, besides=-1), "-1", -1, "-1"),
    (Whole(), "+" + "9" * 40, int("9" * 40), "9" * 40),
    (Number(0, 2), "1e0", 1.0, "1.0"),
    (Number(0, 2), 2, 2.0, "2.0"),
    (Flag(), "TRUE", True, "true"),
    (Choice({"all": -1, "0": 0}), "all", -1, "all"),
    (names("zstd", any_case=True), "ZSTD", "zstd", "zstd"),
    (names("Zstd", any_case=True), "zSTD", "Zstd", "Zstd"),
    (NameList(("a", "b")), "b , a", ("b", "a"), "b,a"),
    (NameList(("a", "b")), "", (), ""),
    (NameList(("a", "b"), in_order=True), ["B", "a", "b"], ("b", "a"), "b,a"),
    (Text(1, 3), 12, "12", "12"),
    (Matching("[a-z]+", "letters"), "ab", "ab", "ab"),
]


@pytest.mark.parametrize(("kind", "given", "value", "text"), TAKEN)
def test_values_and_their_texts(kind, given, value, text):
    assert kind.parse(given) == value
    assert kind.text(value) == text
    assert kind.parse(kind.text(value)) == value


REFUSED = [
    *((Whole(1, 9), given, Problem.NO_WHOLE_NUMBER) for given in ("", "1.0", "1_0", "\u0663", " 1", 1.5, True, None)),
    (Whole(bits=32), 1 << 31, Problem.NO_WHOLE_NUMBER),
    (Whole(1, 9), "0", Problem.TOO_LOW),
    (Whole(1, 9), 10**400, Problem.TOO_HIGH),
    (Whole(1, 9, besides=-1), 0, Problem.NEITHER_IN_RANGE_NOR_BESIDES),
    *((Number(0, 2), given, Problem.NO_NUMBER) for given in ("", "1e", "nan", True, None)),
    (Number(0, 2), float("nan"), Problem.TOO_HIGH),
    (Number(0, 2), "-1", Problem.TOO_LOW),
    (Flag(), "1", Problem.NO_FLAG),
    (names("zstd"), "ZSTD", Problem.NO_NAME),
    (NameList(("a", "b")), "a,a", Problem.REPEATED_NAME),
    (NameList(("a", "b")), "a,", Problem.NO_NAME),
    (NameList(("a", "b"), in_order=True), "", Problem.NO_NAME),
]


@pytest.mark.parametrize(("kind", "given", "problem"), REFUSED)
def test_what_is_wrong_with_a_value(kind, given, problem):
    with pytest.raises(WrongValueError) as error:
        kind.parse(given)
    assert error.value.problem is problem


def test_a_dialect_words_a_problem():
    with pytest.raises(WrongValueError) as error:
        Whole(1, 9).parse("10")
    assert reason(error.value, {Problem.TOO_HIGH: "at most {high}"}) == "at most 9"
    assert reason(error.value, {}) == "give a whole number from 1 to 9"
    assert reason(ValueError("as it is"), {}) == "as it is"


def test_a_choice_says_why_nothing_else_will_do():
    with pytest.raises(ValueError, match="there is one order"):
        Choice({"fifo": "fifo"}, others="there is one order").parse("lifo")


def test_a_flag_may_have_other_words():
    assert Flag({"yes": True, "no": False}).parse("No") is False


def test_texts_that_are_none_or_of_a_wrong_length():
    for given in (b"x", len, "", "1234"):
        with pytest.raises(ValueError, match=r"give a text|its length is"):
            Text(1, 3).parse(given)
    with pytest.raises(ValueError, match=r"^give letters$"):
        Matching("[a-z]+", "letters").parse("ab1")


@pytest.mark.parametrize("given", ["a\nb", "a\tb", "\x1b[2J", "\x00", "\x85"])
def test_a_text_in_one_line_has_no_control_characters(given):
    assert Text().parse(given) == given
    with pytest.raises(ValueError, match="a control character"):
        Text(in_line=True).parse(given)


def test_the_nearest_name():
    assert nearest("retention.m", ["retention.ms", "segment.ms"]) == "retention.ms"
    assert nearest("zzz", ["retention.ms"]) is None
    assert hint("retention.m", ["retention.ms"], "x") == "The nearest known one is 'retention.ms'."
    assert hint("zzz", ["retention.ms"], "x") == "docs/x.md has all of them."


def test_the_parts_of_a_text():
    assert listed(" a, ,b ,") == ["a", "b"]
    assert listed("a=1; b=2", ";") == ["a=1", "b=2"]
    assert listed("") == []
