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
# tidelog has brokers; a page that is older than they are says otherwise.
BROKERLESS = whole(
    [
        "there is no bro|ker",
        "there are no bro|kers to",
        "without a bro|ker",
        "semantics and no bro|ker",
        "No bro|ker runs",
    ]
)

PLACE = re.compile(rf"(?<![\w.~-])/(?:{'|'.join(FOLDERS)})/|{re.escape(SIBLING)}")
HOST = re.compile("|".join(map(re.escape, HOSTS)), re.IGNORECASE)
NOTE = re.compile(rf"\b(?:{'|'.join(NOTES)})\b")
NO_BROKER = re.compile("|".join(BROKERLESS).replace(" ", r"\s+"))


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


def test_no_page_or_message_denies_brokers():
    """Decisions say what was so when they were made."""
    said = {path: text for path, text in texts().items() if not path.startswith("decisions/")}
    assert [(path, found[0]) for path, text in said.items() for found in NO_BROKER.finditer(text)] == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        *((NO_BROKER, f"Kafka's words, {words}.") for words in BROKERLESS),
        (NO_BROKER, BROKERLESS[0].replace(" no ", " no\n")),
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
