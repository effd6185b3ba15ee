"""Pages, docstrings and comments name actors and use the field's terms (`tidy_prose`)."""

from collections import defaultdict

import pytest
from tidy_prose import complaints, prose_of_page, prose_of_source
from tidy_repository import files, python_sources, texts
from tidy_source import parse


def folder_of(path):
    """The part of the repository that a file belongs to: its first folder, two of `platform/` and `tests/`."""
    depth = 2 if path.startswith(("platform/", "tests/")) else 1
    return "/".join(path.split("/")[:-1][:depth])


def paths_by_folder():
    """Every page and every Python file but the one with the bad snippets, by folder."""
    found = defaultdict(set)
    for path in files():
        if path.endswith((".md", ".py")) and path != "tests/tidy/tidy_prose.py":
            found[folder_of(path)].add(path)
    return found


PATHS = paths_by_folder()


@pytest.mark.parametrize("folder", sorted(PATHS))
def test_a_folder_names_its_actors(folder):
    paths = PATHS[folder]
    prose = [(path, prose_of_page(text)) for path, text in texts().items() if path in paths and path.endswith(".md")]
    prose += [(source.path, prose_of_source(source)) for source in python_sources() if source.path in paths]
    assert [f"{path}:{line}: {text}" for path, lines in prose for line, text in complaints(lines)] == []


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
        "A sleeper carries it out anew.",
        "A sign of life, as whom it commits.",
    ],
)
def test_a_word_that_hides_the_actor_is_found(line):
    assert list(complaints(prose_of_page(line)))
    assert list(complaints(prose_of_source(parse(f'"""A module."""\n# {line}\n'))))
    assert list(complaints(prose_of_source(parse(f'def f() -> None:\n    """{line}"""\n'))))
    assert list(complaints(prose_of_source(parse(f"TEXT = {line!r}\n", "tidelog.cli.main"))))


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


def test_code_and_the_texts_of_tests_are_left_alone():
    assert list(complaints(prose_of_source(parse("nobody = 1\n", "tidelog.cli.main")))) == []
    assert list(complaints(prose_of_source(parse('name = "told"\n')))) == []
