"""Pages, docstrings and comments name actors and use the field's terms (`tidy_prose`)."""

import pytest
from tidy_prose import complaints, prose_of_page, prose_of_source
from tidy_repository import texts

# Folders that may still have complaints, and how many; the number only falls.
STILL = {"tests/support": 19, "tests/unit": 112}


def folder_of(path):
    """The part of the repository that a file belongs to: its first folder, two of `platform/` and `tests/`."""
    depth = 2 if path.startswith(("platform/", "tests/")) else 1
    return "/".join(path.split("/")[:-1][:depth])


FOLDERS = sorted({folder_of(path) for path in texts() if path.endswith((".md", ".py"))})


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_names_its_actors(folder):
    prose = {
        path: prose_of_page(text) if path.endswith(".md") else prose_of_source(text)
        for path, text in texts().items()
        if path.endswith((".md", ".py")) and folder_of(path) == folder
    }
    found = [f"{path}:{line}: {text}" for path, lines in prose.items() for line, text in complaints(lines)]
    assert found[STILL.get(folder, 0) :] == []


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
