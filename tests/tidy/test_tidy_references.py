"""No page, docstring or comment names a file or a module that does not exist."""

from tidy_references import endings, missing_modules, missing_paths, names_by_module
from tidy_repository import files, package_sources, texts

MODULES = {"tidelog": {"log"}, "tidelog.log": {"lake"}, "tidelog.log.lake": {"Lake"}}


def test_every_path_that_prose_names_exists():
    known = endings(files())
    assert [found for path, text in texts().items() for found in missing_paths(path, text, known)] == []


def test_every_module_that_prose_names_exists():
    modules = names_by_module(package_sources(), texts())
    assert [found for path, text in texts().items() for found in missing_modules(path, text, modules)] == []


def test_a_path_that_is_gone_is_found():
    known = endings(["docs/format.md", "platform/tidelog/log/lake.py"])
    assert list(missing_paths("a.py", '"""See docs/formats.md."""', known))
    assert list(missing_paths("a.py", '"""As in log/door.py."""', known))
    assert list(missing_paths("a.py", "x = 1  # as `doors.py` does", known))
    assert list(missing_paths("a.py", '"""docs/format.md, log/lake.py, lake.py, ~/my/program.py."""', known)) == []
    assert list(missing_paths("a.py", "open('no/such.py')", known)) == []


def test_a_module_that_is_gone_is_found():
    assert list(missing_modules("README.md", "`tidelog.log.door` is gone", MODULES))
    assert list(missing_modules("a.py", '"""Like tidelog.log.lake.Lakes."""', MODULES))
    assert list(missing_modules("README.md", "tidelog.log.lake.Lake.topic, tidelog.end", MODULES)) == []
