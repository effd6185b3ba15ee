"""What the site of documentation must keep: pages ask no other host for anything, and their links lead somewhere."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

# Attributes that a browser fetches by itself; a link of <a> it follows only when a person clicks.
_FETCHED = {
    ("link", "href"),
    *((tag, "src") for tag in ("script", "img", "iframe", "source", "video", "audio", "embed")),
}
_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


@dataclass
class Page(HTMLParser):
    """One page of HTML: what a browser fetches for it, where its links lead, and the places in it."""

    text: str
    fetched: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)
        self.fetched.extend(addresses_in_styles(self.text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (tag, name) in _FETCHED:
                self.fetched.append(value)
            elif value and (tag, name) == ("a", "href"):
                self.links.append(value)
            elif value and name in ("id", "name"):
                self.places.add(value)


def read_pages(site: Path) -> dict[str, Page]:
    """Every page, by its path below the site's folder; a server's page for what is not there has absolute links."""
    pages = {path.relative_to(site).as_posix(): path for path in site.rglob("*.html") if path.name != "404.html"}
    return {name: Page(path.read_text(encoding="utf-8")) for name, path in pages.items()}


def addresses_in_styles(text: str) -> list[str]:
    """What styles fetch: `url(...)` and `@import`, data in the address itself aside."""
    found = [one or other for one, other in _STYLE.findall(text)]
    return [address for address in found if not address.startswith("data:")]


def of_other_hosts(addresses: list[str]) -> list[str]:
    """The addresses that name a host."""
    return [address for address in addresses if urlsplit(address).netloc]


def broken_links(pages: Mapping[str, Page], files: set[str]) -> Iterator[str]:
    """`page: link` for each link to a file of the site, or a place in a page, that is not there."""
    for path, page in sorted(pages.items()):
        for link in (*page.links, *page.fetched):
            there = urlsplit(link)
            if there.scheme or there.netloc:
                continue
            target = normpath(join(dirname(path), unquote(there.path))) if there.path else path
            place = unquote(there.fragment)
            if target not in files or (place and target in pages and place not in pages[target].places):
                yield f"{path}: {link}"
