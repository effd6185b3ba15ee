"""Side by side: the page and the plots are whole by themselves, and say the same as the figures."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import page
import plots
import publish
import pytest
import report
from measures import Demand
from PIL import Image
from support.peers import MEASURES, rate, results, wait

DEMANDS = (Demand("spark batch write", "throughput", "tidelog", "kafka", "fast", at_least=2),)
DRAWN = plots.plots(results(demands=DEMANDS))
PAGE = page.html(results(demands=DEMANDS), DRAWN)
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Elements with their attributes, text, and whether all that is opened is closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def read() -> Reader:
    reader = Reader()
    reader.feed(PAGE)
    assert reader.open == []
    return reader


def test_there_is_a_plot_of_each_kind() -> None:
    assert [plot.key for plot in DRAWN] == ["throughput", "latency", "growth", "bytes"]
    opened = results([replace(MEASURES[4], case="open", metric="open", samples=[])])
    assert [plot.key for plot in plots.plots(opened)] == ["times"]
    assert {plot.key for plot in DRAWN} | {"times"} == set(plots.KEYS)


def test_the_latencies_of_a_case_are_one_drawing() -> None:
    (latency,) = plots.plots(results([wait("tidelog", [2.0]), replace(wait("tidelog", [2.0]), metric="p99")]))
    assert len(latency.panels) == 1


def test_nothing_comes_from_outside(read: Reader) -> None:
    assert re.findall(r"https?:|//[a-z]|@import|<script|<link|<img", PAGE) == []
    assert {tag for tag, _ in read.found} & {"script", "link", "img", "iframe", "object"} == set()
    urls = re.findall(r"url\(([^)]*)\)|href=\"([^\"]*)\"", PAGE)
    assert urls
    ids = {attributes["id"] for _, attributes in read.found if "id" in attributes}
    assert {one or other for one, other in urls} <= {f"#{name}" for name in ids}


def test_no_two_pictures_share_a_name(read: Reader) -> None:
    ids = [attributes["id"] for _, attributes in read.found if "id" in attributes]
    assert len(ids) == len(set(ids)) > 10


def test_every_picture_says_in_words_what_it_shows(read: Reader) -> None:
    pictures = [attributes for tag, attributes in read.found if tag == "svg"]
    assert len(pictures) == 2 * len(DRAWN)  # for wide and for narrow screens
    assert all(attributes["role"] == "img" for attributes in pictures)
    texts = [attributes["aria-label"] or "" for attributes in pictures]
    assert "Spark batch write: tidelog 1.30 M records/s, Kafka 600 k records/s" in texts[0]
    assert "tidelog p50" in texts[2]
    assert "Kafka 1.05 ms at 10,000 records, 1.05 ms at 100,000" in texts[4]


def test_colors_are_the_pages_own_so_that_they_turn_with_the_scheme() -> None:
    drawn = "".join(re.findall(r"<svg.*?</svg>", PAGE, re.DOTALL))
    assert re.findall(r"#[0-9a-f]{6}\b", drawn) == []
    used, given = (set(re.findall(pattern, PAGE)) for pattern in (r"var\(--(\w+)\)", r"--(\w+): #"))
    assert used - {"of"} <= given
    light, dark = re.findall(r":root \{([^}]*)\}", PAGE)
    assert set(re.findall(r"--(\w+):", light)) == set(re.findall(r"--(\w+):", dark))


def test_the_table_has_the_same_figures(read: Reader) -> None:
    text = " ".join(read.text)
    for shown in ("1.30 M records/s", "600 k records/s", "2.17x", "reached", "27.0 B", "1.25M..1.35M", "4.10 ms"):
        assert shown in text
    assert [tag for tag, _ in read.found].count("table") == 1


def test_what_was_measured_is_no_markup() -> None:
    odd = results([rate("tidelog", [1.0], case="<b>&"), rate("kafka <i>", [2.0], case="<b>&")])
    text = page.html(odd, plots.plots(odd))
    assert "<b>" not in text
    assert "<i>" not in text


def test_the_same_results_make_the_same_page() -> None:
    assert page.html(results(demands=DEMANDS), plots.plots(results(demands=DEMANDS))) == PAGE


def test_plots_are_pictures_that_a_page_can_hold(tmp_path: Path) -> None:
    for before in ("peers-times.png", "peers-partial-bytes.png"):
        (tmp_path / before).write_bytes(b"")
    publish.draw(results(), tmp_path)
    (tmp_path / "peers-partial-bytes.png").unlink()  # another run's
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["peers-bytes.png", "peers-growth.png", "peers-latency.png", "peers-throughput.png", "peers.html"]
    for path in tmp_path.glob("*.png"):
        with Image.open(path) as image:
            assert (image.format, image.width) == ("PNG", 1012)
            assert len(image.convert("RGB").getcolors(1_000) or []) > 10
        assert path.stat().st_size < 150_000


def test_a_run_of_one_case_is_drawn_as_far_as_it_goes(tmp_path: Path) -> None:
    assert [plot.key for plot in publish.draw(results(MEASURES[:1]), tmp_path)] == ["throughput"]
    assert publish.draw(results([]), tmp_path) == []


def test_the_docs_are_written_from_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme, speed = tmp_path / "README.md", tmp_path / "docs" / "speed.md"
    fresh, kept = tmp_path / "artifacts", tmp_path / "benchmarks" / "results"
    places = {"ROOT": tmp_path, "README": readme, "SPEED": speed, "FRESH": fresh, "KEPT": kept}
    for attribute, value in places.items():
        monkeypatch.setattr(report, attribute, value)
    speed.parent.mkdir()
    for one in (readme, speed):
        one.write_text("<!-- peers:begin -->\n<!-- peers:end -->\n")
    with pytest.raises(SystemExit, match="no whole results"):
        publish.keep_and_write_docs()
    results(MEASURES[:6]).write(fresh / "peers.json")
    publish.keep_and_write_docs()
    written = [one.read_text() for one in (readme, speed)]
    assert "**1.30 M records/s**" in written[0]
    shown = re.findall(r"\]\((\.\./benchmarks/[^)]*)\)", written[1])
    assert len(shown) == 4
    assert all((speed.parent / path).exists() for path in shown)
    (fresh / "peers.json").unlink()
    publish.keep_and_write_docs()
    assert [one.read_text() for one in (readme, speed)] == written
