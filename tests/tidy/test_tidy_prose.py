"""Pages name actors and use the field's terms (`tidy_prose`)."""

import pytest
from tidy_prose import complaints, prose_of_page, prose_of_source
from tidy_repository import texts

PAGES = sorted(path for path in texts() if path.endswith(".md"))


@pytest.mark.parametrize("path", PAGES)
def test_a_page_names_its_actors(path):
    assert [f"{path}:{line}: {text}" for line, text in complaints(prose_of_page(texts()[path]))] == []


@pytest.mark.parametrize(
    "line",
    [
        "Who has waited for 5 s goes at once.",
        "An append that nobody reads; somebody else's entry; whoever commits.",
        "The caller is told.",
        "What a decision comes to.",
        "So many entries fit.",
        "An offset of another life of the topic.",
        "The file lies in the folder, and stands below a checkpoint.",
    ],
)
def test_a_word_that_hides_the_actor_is_found(line):
    assert list(complaints(prose_of_page(line)))
    assert list(complaints(prose_of_source(f'"""A module."""\n# {line}\n')))
    assert list(complaints(prose_of_source(f'def f() -> None:\n    """{line}"""\n')))


@pytest.mark.parametrize(
    "line",
    [
        "A person who deletes a file; a user whose lease has expired.",
        "A writer that loses the race tries again.",
        "`nobody` and [a link](whoever.md) are code and addresses.",
        "```python\nnobody = 'told'\n```",
        "A partition's end stands for its newest offset.",
    ],
)
def test_other_words_are_left_alone(line):
    assert list(complaints(prose_of_page(line))) == []


def test_code_is_left_alone():
    assert list(complaints(prose_of_source('nobody = "told"\n'))) == []
