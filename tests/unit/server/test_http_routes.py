"""Which path of a server a request's path fits, and its row. No server."""

import pytest

from tidelog.server.routes import FoundPath, Route, Routes, found_path, path_parts

PATHS = [
    (),
    ("subjects",),
    ("subjects", "{subject}"),
    ("subjects", "{subject}", "versions", "{version}"),
    ("schemas", "{id}"),
    ("schemas", "types"),
]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/", [""]),
        ("/subjects", ["subjects"]),
        ("/subjects/", ["subjects", ""]),
        ("/subjects/a%2Fb%2520", ["subjects", "a/b%20"]),
        ("/subjects//versions", ["subjects", "", "versions"]),
        ("/%ff", ["\ufffd"]),
        ("/a+b", ["a+b"]),
    ],
)
def test_a_path_is_split_and_then_decoded(path, parts):
    assert path_parts(path) == parts


@pytest.mark.parametrize(
    ("parts", "own", "variables"),
    [
        ([], (), {}),
        (["subjects"], ("subjects",), {}),
        (["subjects", "a/b"], ("subjects", "{subject}"), {"subject": "a/b"}),
        (["subjects", "{subject}"], ("subjects", "{subject}"), {"subject": "{subject}"}),
        (["subjects", "a", "versions", "1"], PATHS[3], {"subject": "a", "version": "1"}),
        (["schemas", "types"], ("schemas", "types"), {}),
        (["schemas", "7"], ("schemas", "{id}"), {"id": "7"}),
    ],
)
@pytest.mark.parametrize("paths", [PATHS, PATHS[::-1]], ids=["in order", "reversed"])
def test_the_path_with_the_fewest_variables_is_found(paths, parts, own, variables):
    assert found_path(paths, parts) == FoundPath(own, variables)


@pytest.mark.parametrize("parts", [["other"], ["subjects", "a", "versions"], ["subjects", "a", "b", "c"], ["schemas"]])
def test_what_fits_no_path(parts):
    assert found_path(PATHS, parts) is None


@pytest.mark.parametrize(("cuts_slashes", "name"), [(True, "all"), (False, "one")])
def test_slashes_at_the_end_are_nothing_unless_they_count(cuts_slashes, name):
    rows = [Route("GET", "/groups", "all", None), Route("GET", "/groups/{group}", "one", None)]
    assert Routes(rows, cuts_slashes=cuts_slashes).routed("GET", "/groups/")[0].handler == name


def test_a_request_has_one_handler():
    with pytest.raises(AssertionError):
        Routes([Route("GET", "groups", "all", None), Route("GET", "/groups", "other", None)])
