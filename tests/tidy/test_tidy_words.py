"""Words that no file holds: places of one machine, package registries' hosts, notes to finish later."""

import re

import pytest
from tidy_repository import texts


def whole(pieces):
    """Words written with a bar inside, so that this file does not hold them itself."""
    return [piece.replace("|", "") for piece in pieces]


FOLDERS = whole(["wo|rk", "ro|ot", "ho|me"])
(SIBLING,) = whole(["../sha|red"])
HOSTS = whole(
    [
        "py|pi.org",
        "files.python|hosted.org",
        "repo.maven|.apache.org",
        "repo1.maven|.org",
        "crates|.io",
        "registry.npm|js.org",
        "proxy.golang|.org",
        "deb.debian|.org",
    ]
)
NOTES = whole(["TO|DO", "FIX|ME", "XX|X"])

PLACE = re.compile(rf"(?<![\w.~-])/(?:{'|'.join(FOLDERS)})/|{re.escape(SIBLING)}")
HOST = re.compile("|".join(map(re.escape, HOSTS)), re.IGNORECASE)
NOTE = re.compile(rf"\b(?:{'|'.join(NOTES)})\b")


def complaints(pattern):
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_place_of_one_machine():
    assert complaints(PLACE) == []


def test_no_file_names_a_package_registry():
    assert complaints(HOST) == []


def test_no_file_holds_a_note_to_finish_later():
    assert complaints(NOTE) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        *((PLACE, f'open("/{folder}/lake")') for folder in FOLDERS),
        *((PLACE, f"file:///{folder}/lake") for folder in FOLDERS),
        (PLACE, f"see {SIBLING}/notes.md"),
        *((HOST, f"https://{host}/simple") for host in HOSTS),
        *((NOTE, f"# {note}: later") for note in NOTES),
    ],
)
def test_a_forbidden_word_is_found(pattern, line):
    assert pattern.search(line)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (PLACE, f"https://example.org/{FOLDERS[0]}/page"),
        (PLACE, f"~/{FOLDERS[0]}/lake"),
        (PLACE, f"{FOLDERS[1]}/README.md and s3://bucket/{FOLDERS[2]}/x"),
        (HOST, "pip install tidelog"),
        (NOTE, f"mktemp -t lake.{NOTES[2] * 2}"),
    ],
)
def test_other_words_are_left_alone(pattern, line):
    assert not pattern.search(line)
