"""Routes, the guard of browsers, and numbers of queries. No server."""

import pytest

from tidelog.console.base.calls import for_all, whole
from tidelog.console.base.errors import ConsoleError
from tidelog.console.guard import require_own_page
from tidelog.console.records.paging import PlaceToRead, clamped, parsed_cursor
from tidelog.console.routes import ROUTES
from tidelog.server.errors import RequestRefusedError
from tidelog.server.routes import Route, Routes


def nothing(call):
    return None


OWN = Routes(
    [
        Route("GET", "/api/groups", nothing, for_all),
        Route("GET", "/api/groups/{group}", nothing, for_all),
        Route("POST", "/api/groups/{group}/reset", nothing, for_all),
        Route("GET", "/api/groups/all", nothing, for_all),
    ],
    cuts_slashes=False,
)


def test_a_variable_is_decoded_once_and_may_have_slashes():
    assert OWN.routed("GET", "/api/groups/a%2Fb%2520")[1] == {"group": "a/b%20"}
    assert OWN.routed("POST", "/api/groups/%3Cb%3E/reset")[1] == {"group": "<b>"}


def test_a_word_counts_before_a_variable():
    assert OWN.routed("GET", "/api/groups/all")[0].path == "/api/groups/all"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api", 404),
        ("GET", "/api/groups/", 200),
        ("GET", "/api/groups/a/b", 404),
        ("DELETE", "/api/groups", 405),
        ("GET", "/api/groups/a/reset", 405),
    ],
)
def test_what_is_not_there(method, path, status):
    if status == 200:
        assert OWN.routed(method, path)[1] == {"group": ""}
        return
    with pytest.raises(RequestRefusedError) as refused:
        OWN.routed(method, path)
    assert refused.value.status == status


def test_all_routes_fit_together():
    assert Routes(ROUTES).routed("GET", "/api/session")[0].path == "/api/session"


@pytest.mark.parametrize(
    ("method", "headers", "own"),
    [
        ("GET", {"host": "a"}, True),
        ("GET", {"host": "a", "sec-fetch-site": "same-origin"}, True),
        ("GET", {"host": "a", "sec-fetch-site": "none"}, True),
        ("GET", {"host": "a", "sec-fetch-site": "cross-site"}, False),
        ("POST", {"host": "a:1", "origin": "http://a:1"}, True),
        ("POST", {"host": "a:1", "origin": "http://a:2"}, False),
        ("POST", {"host": "a:1", "origin": "null"}, False),
        ("POST", {"host": "a:1", "origin": "http://[a:1"}, False),
    ],
)
def test_pages(method, headers, own):
    if own:
        require_own_page(method, headers)
        return
    with pytest.raises(ConsoleError):
        require_own_page(method, headers)


@pytest.mark.parametrize("text", ["", "x", "1.5", "+1", " 1", "²", "1_000", "--1", "9" * 30, "-1", "11"])
def test_what_is_no_whole_number(text):
    with pytest.raises(ConsoleError):
        whole("limit", text, 0, 10)


def test_a_cursor_is_what_it_was_made_of():
    place = PlaceToRead("forward", {0: 12, 3: 2**62})
    assert parsed_cursor(place.cursor()) == place


@pytest.mark.parametrize("text", ["", "f", "f:", "x:0-1", "f:0", "f:0-1,", "f:-1-2", "f:0-²", "f:0-" + "9" * 40])
def test_what_is_no_cursor(text):
    with pytest.raises(ConsoleError):
        parsed_cursor(text)


def test_a_place_is_kept_within_what_is_there_by_now():
    place = PlaceToRead("backward", {0: 5, 1: 50, 7: 1})
    assert clamped(place, {0: (10, 20), 1: (0, 30)}).offsets == {0: 10, 1: 30}
