"""Debian's Chromium, driven as a person uses it, and what every page must keep meanwhile.

Playwright (of the extra `dev`) drives the browser; axe-core judges what people with assistive technology get.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from support.axe import AXE
from support.kafka_clients import ready
from support.tools import ROOT, require
from support.waiting import PATIENCE_S

SHOTS = ROOT / "build/screenshots"
DESK = (1280, 860)
PHONE = (390, 844)
# A server's refusal, which a page shows to people. What the policy of the page forbids has other words.
_REFUSED = "Failed to load resource: the server responded with a status of"
_CALL = """([folder, name]) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(folder, name);
}"""


@dataclass
class Visit:
    """A page of one origin in a browser of its own. `asked`: every address that it requested; `trouble`: its errors."""

    page: Page
    origin: str
    asked: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)

    def go(self, route: str) -> None:
        """Open a page of the console, and wait until it is shown. `route`: as `topics/orders/records`."""
        self.page.goto(f"{self.origin}/#/{route}")
        self.shown()

    def shown(self) -> None:
        """Wait until the page that the address names is shown."""
        expect(self.page.locator("main[aria-busy=false] h1").first).to_be_visible()

    def press(self, label: str) -> None:
        """Press the button of that name."""
        self.page.get_by_role("button", name=label, exact=True).click()

    def fill(self, label: str, text: str) -> None:
        """Write into the field of that label."""
        self.page.get_by_label(label, exact=True).fill(text)

    def shot(self, name: str) -> None:
        """Keep a picture of what is shown."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")

    def call(self, folder: str, name: str) -> None:
        """Write another name wherever the page has a folder's: for pictures, which no machine's paths belong into."""
        self.page.evaluate(_CALL, [folder, name])

    def findings(self) -> list[str]:
        """What axe-core finds in the page as it is: `rule: place`."""
        (script,) = AXE.command(AXE.folder)
        self.page.evaluate(Path(script).read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document)")
        return [f"{one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]]

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("Math.max(0, document.documentElement.scrollWidth - innerWidth)"))

    def note(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(_REFUSED):
            self.trouble.append(message.text)

    def elsewhere(self) -> list[str]:
        """The addresses that were asked and are not of the console."""
        own = urlsplit(self.origin)
        asked = ((url, urlsplit(url)) for url in self.asked)
        return [url for url, parts in asked if parts[:2] != own[:2] and parts.scheme not in ("data", "blob")]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium without a window; a test skips by name where it is not there, and fails in CI."""
    program = require("chromium", "the console's page")
    if not (AXE.folder / "stamp").exists():  # others may hold the lock of all clients for minutes
        ready(AXE)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox refuses root
    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=arguments, timeout=PATIENCE_S * 1000)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visit(
    browser: Browser,
    origin: str,
    size: tuple[int, int] = DESK,
    *,
    dark: bool = False,
    user: tuple[str, str] | None = None,
) -> Iterator[Visit]:
    """A visitor of the console, with nothing kept from others. At the end no request may have gone elsewhere.

    `user`: name and password, as typed where the browser asks for them.
    """
    with browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        has_touch=size == PHONE,
        accept_downloads=True,
        http_credentials=None if user is None else {"username": user[0], "password": user[1]},
        permissions=["clipboard-read", "clipboard-write"],
    ) as context:
        context.set_default_timeout(PATIENCE_S * 1000)
        visitor = Visit(context.new_page(), origin)
        context.on("request", lambda request: visitor.asked.append(request.url))
        visitor.page.on("console", visitor.note)
        visitor.page.on("pageerror", lambda error: visitor.trouble.append(str(error)))
        visitor.page.on("dialog", lambda shown: visitor.trouble.append(f"a script ran: {shown.message}"))
        yield visitor
        assert visitor.elsewhere() == []
        assert visitor.trouble == []
