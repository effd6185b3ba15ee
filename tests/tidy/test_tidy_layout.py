"""The folders are the packages that pyproject.toml says, and none hides a module of the standard library."""

import pytest
from tidy_layout import (
    bare_folders,
    is_place,
    places_in,
    repeated_test_files,
    shadowed_platform,
    standard_names,
    tables_of,
    wrong_links,
)
from tidy_repository import OUTSIDE_THE_PACKAGE, PLATFORM, ROOT, files, module_name, package_folders, packages_of

# What newcomers look for first.
ASKED = (
    "codec", "version of Fetch", "key of a topic", "lag", "connector", "page", "command", "store", "assignor",
    "transformation",
)  # fmt: skip
LINKED = ("groups", "jobs", "retention", "sinks", "sources")


def test_every_folder_of_python_files_is_a_package():
    assert bare_folders(files(), package_folders(), OUTSIDE_THE_PACKAGE) == []


def test_the_top_folders_are_links_in_the_package():
    assert list(wrong_links(ROOT, LINKED)) == []


def test_the_architecture_names_every_room_and_only_places_that_exist():
    """A newcomer gets from a question to the place where the answer is: docs of rooms are those that are there."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = {path.name for path in (ROOT / PLATFORM / "tidelog").iterdir() if (path / "__init__.py").is_file()}
    folders, questions = tables_of(text, "folders"), tables_of(text, "question: where is")
    assert rooms - {name for row in folders for name in places_in(row)} == set()
    assert [place for row in [*folders, *questions] for place in places_in(row) if not is_place(ROOT, place)] == []
    assert [thing for thing in ASKED if not any(thing in row.split("|")[1] for row in questions)] == []


def test_a_place_that_is_not_there_is_found():
    row = "| a thing | `groups/member`, `log/nowhere`; `log/door` |"
    assert [place for place in places_in(row) if not is_place(ROOT, place)] == ["log/nowhere"]


def test_no_module_is_named_like_a_standard_one():
    assert list(standard_names(files())) == []


def test_no_two_test_files_have_one_name():
    assert list(repeated_test_files(files())) == []


def test_test_files_of_one_name_are_found():
    assert list(repeated_test_files(["tests/unit/test_a.py", "tests/a/test_b.py", "tests/contract/test_a.py"]))


def test_platform_stays_the_standard_librarys():
    assert shadowed_platform(ROOT) == ""


@pytest.fixture
def repository(tmp_path):
    inside = tmp_path / PLATFORM / "tidelog"
    (inside / "log").mkdir(parents=True)
    for name in ("groups", "jobs"):
        (tmp_path / name).mkdir()
        (inside / name).symlink_to(f"../../{name}")
    return tmp_path


def test_right_links_are_left_alone(repository):
    assert list(wrong_links(repository, ["groups", "jobs"])) == []


def test_a_missing_link_is_found(repository):
    (repository / PLATFORM / "tidelog/jobs").unlink()
    assert list(wrong_links(repository, ["groups", "jobs"]))


@pytest.mark.parametrize("target", ["../../groups", "/somewhere/jobs"])
def test_a_link_that_leads_elsewhere_is_found(repository, target):
    link = repository / PLATFORM / "tidelog/jobs"
    link.unlink()
    link.symlink_to(target)
    assert list(wrong_links(repository, ["groups", "jobs"]))


@pytest.mark.parametrize("path", ["other", "log/deep"])
def test_another_link_is_found(repository, path):
    (repository / PLATFORM / "tidelog" / path).symlink_to("../../groups")
    assert list(wrong_links(repository, ["groups", "jobs"]))


def test_a_folder_that_is_no_package_is_found():
    paths = [
        "setup.py",
        "tests/unit/test_a.py",
        "platform/tidelog/log/__init__.py",
        "platform/tidelog/log/door.py",
        "platform/tidelog/log/deep/a.py",
        "groups/offsets.py",
    ]
    assert bare_folders(paths, packages_of(paths, ["groups"]), ["tests"]) == ["groups", "platform/tidelog/log/deep"]


@pytest.mark.parametrize(
    "path", ["sinks/queue.py", "platform/tidelog/log/types.py", "platform/io/a.py", "tests/select.py"]
)
def test_a_standard_name_is_found(path):
    assert list(standard_names([path]))


def test_other_names_are_left_alone():
    assert (
        list(standard_names(["platform/tidelog/log/door.py", "platform/tidelog/log/__init__.py", "queue/README.md"]))
        == []
    )


def test_a_package_named_platform_is_found(tmp_path):
    folder = tmp_path / PLATFORM
    folder.mkdir()
    assert shadowed_platform(tmp_path) == ""
    (folder / "__init__.py").touch()
    assert "delete it" in shadowed_platform(tmp_path)


def test_a_module_named_platform_is_found(tmp_path):
    (tmp_path / "platform.py").touch()
    assert "AttributeError" in shadowed_platform(tmp_path)


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("groups/rules/joining.py", "tidelog.groups.rules.joining"),
        ("groups/store/rows.py", ""),
        ("platform/pyspark_tidelog/source.py", "pyspark_tidelog.source"),
        ("platform/tidelog/__main__.py", "tidelog.__main__"),
        ("platform/tidelog/log/lake.py", "tidelog.log.lake"),
        ("platform/tidelog/log/__init__.py", "tidelog.log"),
        ("platform/tidelog/log/storage/local.py", ""),
        ("tests/unit/test_a.py", ""),
    ],
)
def test_the_module_of_a_file(path, module):
    packages = ("groups/rules", "platform/pyspark_tidelog", "platform/tidelog", "platform/tidelog/log")
    folders = packages_of([f"{folder}/__init__.py" for folder in packages], ["groups"])
    assert module_name(path, folders) == module
