"""Filters of records: keys, headers, texts, and paths into JSON."""

import orjson
import pytest

from tidelog.console.base.errors import ConsoleError
from tidelog.console.records.filters import parsed_path, record_filter

VALUE = orjson.dumps({"a": {"b": [1, {"c d": "x"}]}, "n": None, "t": True, "text": "7", "number": 7, "": "empty"})


@pytest.mark.parametrize(
    ("path", "takes"),
    [
        ("$", True),
        ("$.a", True),
        ("$.a.b[0]=1", True),
        ("$.a.b[1]['c d']=x", True),
        ('$.a.b[1]["c d"]=x', True),
        ("$.a.b[2]", False),
        ("$.a.b.c", False),
        ("$.a[0]", False),
        ("$.n", True),
        ("$.n=null", True),
        ("$.t=true", True),
        ("$.t=True", False),
        ("$.text=7", True),
        ("$.number=7", True),
        ("$.number=7.0", False),
        ("$['']=empty", True),
        ("$.missing=", False),
        ('$.a.b=[1,{"c d":"x"}]', True),
    ],
)
def test_a_path_into_json(path, takes):
    assert record_filter("", [], "", path).takes(b"k", VALUE, (), orjson.loads) is takes


@pytest.mark.parametrize(
    "path", ["a", ".a", "$a", "$.", "$..a", "$.a[", "$.a[x]", "$.a[-1]", "$[", "$.a]", "$" + ".a" * 65]
)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ConsoleError) as refused:
        parsed_path(path)
    assert refused.value.status == 400


def test_a_value_that_is_no_json_has_no_path():
    wanted = record_filter("", [], "", "$")
    assert not wanted.takes(None, b"\xff", (), orjson.loads)
    assert not wanted.takes(None, None, (), orjson.loads)


@pytest.mark.parametrize(
    ("key", "headers", "text", "takes"),
    [
        ("", [], "", True),
        ("ann", [], "", True),
        ("nn", [], "", True),
        ("bob", [], "", False),
        ("", ["source"], "", True),
        ("", ["source:web"], "", True),
        ("", ["source:app"], "", False),
        ("", ["source:web", "other"], "", False),
        ("", ["empty:"], "", True),
        ("", ["null:"], "", False),
        ("", ["null"], "", True),
        ("", [], "ä", True),
        ("", [], "Ä", False),
        ("ann", ["source"], "none", False),
    ],
)
def test_all_that_is_given_must_be_so(key, headers, text, takes):
    own = (("source", b"app2"), ("source", b"web"), ("empty", b""), ("null", None))
    wanted = record_filter(key, headers, text, "")
    assert wanted.takes(b"anna", "vä".encode(), own, orjson.loads) is takes
    assert wanted.takes_all is (not key and not headers and not text)


def test_a_record_without_a_key_or_a_value_passes_no_filter_of_them():
    assert not record_filter("a", [], "", "").takes(None, b"a", (), orjson.loads)
    assert not record_filter("", [], "a", "").takes(b"a", None, (), orjson.loads)
