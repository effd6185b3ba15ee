"""The console at a lake with 1,000 topics, in a real Chromium: its first page, its live tail, what it costs idle."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import brokers
import pyarrow as pa
from figures import Row, percentile
from plan import Plan
from playwright.sync_api import Browser, Page, sync_playwright

import tidelog

_TOPICS = 1_000
_PARTITIONS = 10
_MOST_FIRST_S = 1.0
_MOST_TAIL_MS = 100.0
_MOST_IDLE = 0.03
_SETTLING_S = 6.0
_IDLE_S = 20.0
_LIMIT_MS = 120_000
# Notes in the page when each record's row is there, by the same clock as this process's.
_WATCH = """() => {
    window.seen = {};
    new MutationObserver((changes) => {
        const now = performance.timeOrigin + performance.now();
        for (const row of changes.flatMap((change) => [...change.addedNodes])) {
            if (row.dataset?.at) window.seen[row.dataset.at] = now;
        }
    }).observe(document.querySelector("table.records tbody"), { childList: true });
}"""


def run(plan: Plan) -> list[Row]:
    """Open the list of topics in new browsers' contexts; then follow a topic; then let an overview stand."""
    program = shutil.which("chromium")
    if program is None:
        raise RuntimeError("chromium is not there: apt install chromium")
    folder = plan.work / "console"
    with tidelog.Lake(str(folder)) as lake:
        for number in range(_TOPICS):
            lake.create_topic(f"topic-{number:04}", _PARTITIONS)
            lake.topic(f"topic-{number:04}").append([{"value": "1", "partition": p} for p in range(_PARTITIONS)])
        with sync_playwright() as driver:
            root = ["--no-sandbox"] if os.geteuid() == 0 else []
            browser = driver.chromium.launch(executable_path=program, args=root)
            try:
                cold = []
                for _ in range(plan.rounds):
                    with _running(folder) as (url, _):
                        cold.append(_first(browser, url))
                with _running(folder) as (url, pid):
                    firsts = [_first(browser, url) for _ in range(plan.rounds + 1)][1:]
                    tails = _tail(browser, url, lake, plan.latencies)
                    idle = _idle(browser, url, pid)
            finally:
                browser.close()
    return _rows(firsts, cold, tails, idle)


def _rows(firsts: list[float], cold: list[float], tails: list[float], idle: float) -> list[Row]:
    first, at_start, tail = percentile(firsts, 50), percentile(cold, 50), percentile(tails, 50)
    return [
        Row(
            f"the console's list of {_TOPICS:,} topics, from the address to its rows, p50",
            f"≤ {_MOST_FIRST_S:g} s",
            f"{first:.2f} s (right after its start {at_start:.2f} s)",
            max(first, at_start) <= _MOST_FIRST_S,
            {"seconds": firsts, "at_start_s": cold},
        ),
        Row(
            "its live tail: from a record's acknowledgement to its row in the page, p50",
            f"≤ {_MOST_TAIL_MS:g} ms",
            f"{tail:.0f} ms (p99 {percentile(tails, 99):.0f} ms)",
            tail <= _MOST_TAIL_MS,
            {"p50_ms": tail, "p99_ms": percentile(tails, 99)},
        ),
        Row(
            f"an idle console of {_TOPICS:,} topics with one open page",
            f"< {_MOST_IDLE:.0%} of a core",
            f"{idle:.2%}",
            idle < _MOST_IDLE,
            {"share": idle},
        ),
    ]


def _first(browser: Browser, url: str) -> float:
    """From the address to the topics' rows, in a browser that has nothing of the page yet, in s."""
    with browser.new_context() as context:
        page = _page(context.new_page())
        began = time.perf_counter()
        page.goto(f"{url}#/topics")
        page.locator("main tbody tr a").nth(99).wait_for()
        return time.perf_counter() - began


def _tail(browser: Browser, url: str, lake: tidelog.Lake, count: int) -> list[float]:
    """From each append's return to the row in the page, in ms."""
    topic = lake.topic("topic-0500")
    acknowledged = {}
    with browser.new_context() as context:
        page = _page(context.new_page())
        page.goto(f"{url}#/topics/topic-0500/records")
        page.get_by_role("button", name="Live tail").click()
        page.get_by_text("Live: 0 records").wait_for()
        page.evaluate(_WATCH)
        for number in range(count):
            records = {"value": pa.array([b"v%d" % number]), "partition": pa.array([0], pa.int32())}
            topic.append(pa.table(records))
            acknowledged[f"0-{number + 1}"] = time.time() * 1000
            page.locator(f"[data-at='0-{number + 1}']").wait_for()
        seen: dict[str, float] = page.evaluate("window.seen")
    return [max(0.0, seen[place] - at) for place, at in acknowledged.items()]


def _idle(browser: Browser, url: str, pid: int) -> float:
    """The process's CPU time over its time while a page stands open."""
    with browser.new_context() as context:
        page = _page(context.new_page())
        page.goto(f"{url}#/overview")
        page.locator("main .tile").first.wait_for()
        page.wait_for_timeout(_SETTLING_S * 1000)
        began, began_cpu = time.monotonic(), brokers.processor_s(pid)
        page.wait_for_timeout(_IDLE_S * 1000)
        return (brokers.processor_s(pid) - began_cpu) / (time.monotonic() - began)


def _page(page: Page) -> Page:
    page.set_default_timeout(_LIMIT_MS)
    return page


@contextmanager
def _running(folder: Path) -> Iterator[tuple[str, int]]:
    """A console's process: its URL, and its id."""
    command = ["--lake", str(folder), "--format", "json", "console", "--listener", "127.0.0.1:0"]
    with subprocess.Popen([sys.executable, "-m", "tidelog", *command], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"], process.pid
        finally:
            process.terminate()
