"""Visits of pages that another project serves: a browser that notes what a page fails at."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, Response
from support.waiting import PATIENCE_S

_SIZE = {"width": 1280, "height": 900}


class Visitor:
    """A page, and which answers of its server were errors. Scripts' errors aren't noted: other projects have theirs."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.trouble: list[str] = []
        self._origin = origin
        page.on("response", self._answered)

    def go(self, path: str) -> str:
        """Open a page; its text. Raises `AssertionError` where the server says that something failed."""
        self.page.goto(f"{self._origin}{path}")
        return self.text()

    def text(self) -> str:
        """What is shown."""
        self.page.wait_for_load_state("networkidle")
        self.require_sound()
        return self.page.inner_text("body")

    def rows(self) -> list[list[str]]:
        """The cells of all tables that are shown."""
        rows = self.page.locator("tr").all()
        return [[cell.strip() for cell in row.locator("td,th").all_inner_texts()] for row in rows]

    def require_sound(self) -> None:
        """Raises `AssertionError` where something failed since the last look."""
        trouble, self.trouble = self.trouble, []
        assert not trouble, f"{self.page.url}: {trouble}"

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.url.startswith(self._origin):
            self.trouble.append(f"{response.status} {response.url}: {response.text()[:300]}")


@contextmanager
def visitor(browser: Browser, origin: str) -> Iterator[Visitor]:
    """A visitor with nothing kept from others. It asks the server of this origin alone."""
    with browser.new_context(viewport=_SIZE) as context:  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_S * 1000)
        context.route(lambda url: not url.startswith(origin), lambda route: route.abort())
        yield Visitor(context.new_page(), origin)
