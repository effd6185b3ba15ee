"""The console's page keeps the rules of its policy, file by file."""

import re
from pathlib import PurePosixPath

import pytest
from tidy_page import PAGE, VENDORED, complaints_of
from tidy_repository import files, texts

OWN = [path for path in files() if path.startswith(f"{PAGE}/") and not path.startswith(VENDORED)]


@pytest.mark.parametrize("path", OWN)
def test_a_file_of_the_page_keeps_the_rules(path):
    assert list(complaints_of(path, texts()[path], files())) == []


def test_the_page_ships_whole():
    package_data = re.search(r'^"tidelog\.console" = \[(.*?)\]', texts()["pyproject.toml"], re.MULTILINE | re.DOTALL)
    assert package_data
    globs = re.findall(r'"([^"]+)"', package_data[1])
    paths = [
        PurePosixPath(path).relative_to("platform/tidelog/console") for path in files() if path.startswith(f"{PAGE}/")
    ]
    assert [
        path for path in paths if not any(len(path.parts) == glob.count("/") + 1 and path.match(glob) for glob in globs)
    ] == []


def test_what_others_wrote_comes_with_its_licence():
    folders = {path.rpartition("/")[0] for path in files() if path.startswith(VENDORED)}
    assert folders
    assert [folder for folder in folders if "MIT" not in texts()[f"{folder}/LICENSE"]] == []


@pytest.mark.parametrize(
    "line",
    [
        "place.innerHTML = name;",
        "eval(name);",
        'h("p", { "style": "color: red" })',
        "place.style.color = colour;",
        '<p style="color: red">',
        '<button onclick="go()">',
        "<script>go()</script>",
        '<script src="https://cdn.example.org/a.js"></script>',
        "@import 'other.css';",
        'import { h } from "./nowhere.js";',
    ],
)
def test_a_broken_rule_is_found(line):
    assert list(complaints_of(f"{PAGE}/app.js", line, [f"{PAGE}/base/dom.js"]))


def test_other_lines_are_left_alone():
    text = 'import { h } from "./base/dom.js";\n// a comment\nplace.className = "style";\n<svg xmlns="http://www.w3.org/2000/svg">'
    assert list(complaints_of(f"{PAGE}/app.js", text, [f"{PAGE}/base/dom.js"])) == []
