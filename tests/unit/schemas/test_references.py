"""The schemas that one needs: each read once, those that others need first."""

import pytest

from tidelog.schemas.base.references import texts_of

# {subject: (text, what it references)}
GRAPH = {
    "a": ("A", [("b", "b", 1), ("c", "c", 1)]),
    "b": ("B", [("d", "d", 1)]),
    "c": ("C", [("d", "d", 1), ("b", "other", 1)]),
    "d": ("", []),
    "other": ("O", []),
    "itself": ("I", [("x", "itself", 1), ("d", "d", 1)]),
}


@pytest.mark.parametrize(
    ("subject", "texts"),
    [
        ("d", [("x", "")]),
        ("b", [("d", ""), ("x", "B")]),
        ("a", [("d", ""), ("b", "B"), ("c", "C"), ("x", "A")]),
        ("itself", [("d", ""), ("x", "I")]),
    ],
)
def test_what_others_need_comes_first_and_the_first_of_a_name_counts(subject, texts):
    asked = []

    def read(reference):
        asked.append(reference)
        return GRAPH[reference[1]]

    assert list(texts_of([("x", subject, 1)], read).items()) == texts
    assert len(asked) == len({*asked})
    assert texts_of([], read) == {}


def test_a_long_chain_needs_no_recursion():
    def read(reference):
        name, _, number = reference
        return name, [(f"{number + 1}", "s", number + 1)] if number < 5000 else []

    assert [*texts_of([("0", "s", 0)], read)] == [str(number) for number in range(5000, -1, -1)]
