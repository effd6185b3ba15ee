"""No module of the product is too small to be one, and a class name stands for one thing."""

from tidy_product import REPEATED_CLASSES, SMALL_MODULES, repeated_classes, small_modules
from tidy_repository import package_sources
from tidy_source import parse


def test_a_small_module_with_one_importer_has_a_reason():
    found = set(small_modules(package_sources()))
    assert found - set(SMALL_MODULES) == set(), "merge each, or give its idea in tidy_product.SMALL_MODULES"
    assert set(SMALL_MODULES) - found == set(), "these need no reason any more: take them from SMALL_MODULES"


def test_a_class_name_stands_for_one_thing():
    found = set(repeated_classes(package_sources()))
    assert found - set(REPEATED_CLASSES) == set(), "rename all but one, or say why in tidy_product.REPEATED_CLASSES"
    assert set(REPEATED_CLASSES) - found == set(), "these need no reason any more: take them from REPEATED_CLASSES"


def test_a_small_module_is_found():
    lines = "x = 1\n" * 59
    one = parse("from tidelog.a.part import x", "tidelog.a.one", "a/one.py")
    part = parse(lines, "tidelog.a.part", "a/part.py")
    assert small_modules([one, part]) == ["a/part.py"]
    assert small_modules([one, parse(lines + "x = 2\n", "tidelog.a.part", "a/part.py")]) == []
    assert small_modules([one, part, parse("import tidelog.a.part", "tidelog.a.two", "a/two.py")]) == []
    assert small_modules([parse("from tidelog.a import part", "tidelog.b.one", "b/one.py"), part]) == []
    assert small_modules([parse("from tidelog.a.part import x", "tidelog.a", "a/__init__.py"), part]) == []
    assert small_modules([part]) == []


def test_a_class_name_with_two_meanings_is_found():
    one, two = parse("class Kind: ...", "tidelog.a.one", "a/one.py"), parse("class Kind: ...", "tidelog.b", "b.py")
    assert repeated_classes([one, two]) == {"Kind": ["a/one.py", "b.py"]}
    assert repeated_classes([one, parse("from tidelog.a.one import Kind\nclass Other:\n    class Kind: ...")]) == {}
