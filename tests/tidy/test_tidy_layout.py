"""The folders are the packages that pyproject.toml says, and none hides a module of the standard library."""

import re

import pytest
from tidy_layout import (
    PLATFORM,
    repeated_test_files,
    shadowed_platform,
    standard_names,
    unmapped_folders,
    wrong_mappings,
)
from tidy_repository import OUTSIDE_THE_PACKAGE, ROOT, files, module_name, setuptools_table, texts

PACKAGES = setuptools_table()["packages"]
MAPPING = setuptools_table()["package-dir"]


def test_every_package_is_mapped_and_there():
    assert list(wrong_mappings(PACKAGES, MAPPING, files())) == []


def test_every_folder_of_python_files_is_a_package():
    assert unmapped_folders(files(), MAPPING, OUTSIDE_THE_PACKAGE) == []


def test_no_module_is_named_like_a_standard_one():
    assert list(standard_names(files())) == []


def test_no_two_test_files_have_one_name():
    assert list(repeated_test_files(files())) == []


def test_test_files_of_one_name_are_found():
    assert list(repeated_test_files(["tests/unit/test_a.py", "tests/a/test_b.py", "tests/contract/test_a.py"]))


def test_platform_stays_the_standard_librarys():
    assert shadowed_platform(ROOT) == ""


def test_the_readme_of_platform_has_every_package():
    rows = re.findall(r"^\| `([^`]+)/` \| `([^`]+)` \|", texts()["platform/README.md"], re.MULTILINE)
    assert dict(rows) == {folder: module for module, folder in MAPPING.items()}


@pytest.mark.parametrize(
    ("packages", "mapping", "present"),
    [
        (["tidelog.log"], {}, ["platform/log/__init__.py"]),
        ([], {"tidelog.log": "platform/log"}, ["platform/log/__init__.py"]),
        (["tidelog.log"], {"tidelog.log": "platform/log"}, ["platform/log/door.py"]),
        (["tidelog.log"], {"tidelog.log": "platform/logs"}, ["platform/logs/__init__.py"]),
    ],
)
def test_a_wrong_mapping_is_found(packages, mapping, present):
    assert list(wrong_mappings(packages, mapping, present))


def test_an_unmapped_folder_is_found():
    paths = [
        "setup.py",
        "tests/unit/test_a.py",
        "platform/log/door.py",
        "groups/offsets.py",
        "platform/log/deep/a.py",
    ]
    assert unmapped_folders(paths, {"tidelog.log": "platform/log"}, ["tests"]) == ["groups", "platform/log/deep"]


@pytest.mark.parametrize("path", ["sinks/queue.py", "platform/log/types.py", "platform/io/a.py", "tests/select.py"])
def test_a_standard_name_is_found(path):
    assert list(standard_names([path]))


def test_other_names_are_left_alone():
    assert list(standard_names(["platform/log/door.py", "platform/log/__init__.py", "queue/README.md"])) == []


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
        ("platform/log/lake.py", "tidelog.log.lake"),
        ("platform/log/__init__.py", "tidelog.log"),
        ("platform/log/storage/local.py", ""),
        ("tests/unit/test_a.py", ""),
    ],
)
def test_the_module_of_a_file(path, module):
    assert module_name(path, {"platform/log": "tidelog.log"}) == module
