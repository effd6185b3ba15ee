"""The frame of the console's page: keys, themes, addresses, and a server that is gone."""

import pytest
from playwright.sync_api import expect
from support.browsers import visit
from support.console import running_console


@pytest.fixture
def console(tmp_path):
    with running_console(tmp_path / "lake") as found:
        yield found


def test_keys_lead_to_pages_and_list_themselves(browser, console):
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("overview")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("start or stop the live tail")
        visitor.shot("keys")
        assert visitor.findings() == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        for keys, heading in (("gt", "Topics"), ("gg", "Groups"), ("gs", "SQL"), ("gd", "Doctor"), ("go", "Overview")):
            for key in keys:
                page.keyboard.press(key)
            expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        page.keyboard.press("g")
        page.keyboard.press("s")
        page.get_by_label("Query").focus()
        page.keyboard.press("g")
        page.keyboard.press("t")
        expect(page.get_by_role("heading", level=1)).to_have_text("SQL")  # keys of a field are its text


def test_all_is_reached_by_the_tab_key(browser, console):
    console.lake.create_topic("orders", 1)
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("topics")
        expect(page.get_by_role("link", name="orders")).to_be_visible()
        page.locator("body").press("Tab")
        expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        seen = []
        for _ in range(12):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.textContent.trim()"))
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", seen
            if seen[-1] == "orders":
                break
        assert seen[-1] == "orders"


def test_the_theme_is_switched_and_kept(browser, console):
    with visit(browser, console.url) as visitor:
        page = visitor.page
        visitor.go("overview")
        colour = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(colour)
        visitor.press("Theme: system")
        visitor.press("Theme: light")
        assert page.evaluate(colour) != light
        page.reload()
        visitor.shown()
        expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
        assert page.evaluate(colour) != light
        visitor.press("Theme: dark")
        assert page.evaluate(colour) == light


def test_an_address_that_leads_nowhere_says_so(browser, console):
    with visit(browser, console.url) as visitor:
        visitor.go("nothing/here")
        expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Nothing is here")


def test_a_server_that_is_gone_is_named(browser, tmp_path):
    with running_console(tmp_path / "lake") as console, visit(browser, console.url) as visitor:
        visitor.go("overview")
        console.server.drain()
        expect(visitor.page.get_by_role("alert")).to_contain_text("does not answer")
        visitor.trouble[:] = [words for words in visitor.trouble if "net::ERR_" not in words]
