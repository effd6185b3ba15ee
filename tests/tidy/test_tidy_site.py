"""The documentation as a site: it builds without a warning, asks no other host for anything, and its links hold."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tidy_repository import ROOT, files
from tidy_site import Page, addresses_in_styles, broken_links, of_other_hosts, read_pages


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert (built.returncode, built.stderr) == (0, "")
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    wanted = [path for path in files() if path.endswith(".md") and path.rpartition("/")[0] in ("", "docs", "decisions")]
    built = {path: site / path.replace("README.md", "index.md").replace(".md", ".html") for path in wanted}
    assert [path for path, page in built.items() if not page.exists()] == []


def test_pages_and_styles_ask_no_other_host(site: Path) -> None:
    fetched = {path: page.fetched for path, page in read_pages(site).items()}
    fetched |= {path.name: addresses_in_styles(path.read_text(encoding="utf-8")) for path in site.rglob("*.css")}
    assert {path: of_other_hosts(addresses) for path, addresses in fetched.items() if of_other_hosts(addresses)} == {}


def test_links_lead_somewhere(site: Path) -> None:
    there = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    assert list(broken_links(read_pages(site), there)) == []


@pytest.mark.parametrize(
    "markup",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/a.css">',
        '<img src="http://example.org/a.png">',
        "<style>@import 'https://example.org/a.css'; b { background: url(https://example.org/b.png) }</style>",
    ],
)
def test_a_request_to_another_host_is_found(markup: str) -> None:
    assert of_other_hosts(Page(markup).fetched)


def test_a_link_for_people_may_leave_the_site() -> None:
    page = Page('<a href="https://example.org/">there</a><img src="data:image/png;base64,AA">')
    assert of_other_hosts(page.fetched) == []
    assert list(broken_links({"a.html": page}, {"a.html"})) == []


def test_broken_links_are_found() -> None:
    pages = {
        "a.html": Page('<a href="docs/b.html#there">1</a><a href="#gone">2</a><a href="docs/c.html">3</a>'),
        "docs/b.html": Page('<h2 id="there"></h2><a href="../a.html#gone">4</a><img src="../no.png">'),
    }
    assert list(broken_links(pages, {"a.html", "docs/b.html"})) == [
        "a.html: #gone",
        "a.html: docs/c.html",
        "docs/b.html: ../a.html#gone",
        "docs/b.html: ../no.png",
    ]
