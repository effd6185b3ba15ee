"""Programs by which teams look at Kafka and Connect: kcctl at a worker, Kafdrop's and AKHQ's pages at brokers.

Their projects release them by themselves, so they are looked for in a folder (`--programs`) where a user has put what
those release: kcctl's folder, `kafdrop-*.jar` and `akhq-*.jar`. What is not there is named, and not run. Pages are
opened by Debian's Chromium, at brokers without users and where clients log in.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from compat import brokers
from compat.kafka_scripts import Tools
from compat.suite import ABSENT, FAILED, PASSED, Outcome
from compat.uis import akhq, kafdrop, kcctl
from compat.uis.programs import AKHQ, KAFDROP, KCCTL, Program
from compat.uis.visits import Visitor, visitor
from playwright.sync_api import Error as BrowserError
from support.browsers import chromium
from support.kafka_users import ADMIN

from tidelog.log.base.errors import TidelogError

SUITE = "kafka-uis"
Page = Callable[[Visitor, Tools], None]
Start = Callable[[Sequence[str | Path], Tools], AbstractContextManager[str]]
# By program: how it starts, and its pages.
_UIS: dict[Program, tuple[Start, Mapping[str, Page]]] = {
    KAFDROP: (kafdrop.running, kafdrop.PAGES),
    AKHQ: (akhq.running, akhq.PAGES),
}


def outcomes(kafka: Path, programs: Path, work: Path, only: str = "") -> Iterator[Outcome]:
    """Run what is there, one after another. `kafka`: Kafka's scripts. `only`: a part of a name."""
    if only in KCCTL.name:
        command = KCCTL.command(programs)
        if command is None:
            yield _absent(KCCTL, programs)
        else:
            yield _outcome(KCCTL.name, partial(kcctl.commands, command, work / "kcctl"))
    for program, (start, pages) in _UIS.items():
        command = program.command(programs)
        if command is None:
            yield _absent(program, programs)
            continue
        for mode, user in (("", None), (", SASL", ADMIN)):
            tests = {f"{program.name}: {name}{mode}": page for name, page in pages.items()}
            wanted = {name: page for name, page in tests.items() if only in name}
            folder = work / f"{program.name}{'-sasl' if user else ''}"
            if wanted:
                with brokers.running(folder, {}, os.environ, user) as address:
                    tools = Tools(kafka, address, user, folder / "clients", folder / "lake")
                    yield from _visits(tools, start(command, tools), wanted)


def _visits(tools: Tools, ui: AbstractContextManager[str], tests: Mapping[str, Page]) -> Iterator[Outcome]:
    tools.archive_classes()
    _prepare(tools)
    with ui as url, chromium() as browser, visitor(browser, url) as page:
        for name, test in tests.items():
            yield _outcome(name, partial(test, page, tools))


def _prepare(tools: Tools) -> None:
    """A topic with its configuration, records and a group, and an ACL: what the pages are to show."""
    tools.topic("ui-orders")
    place = ("--entity-type", "topics", "--entity-name", "ui-orders")
    tools("kafka-configs", *place, "--alter", "--add-config", "retention.ms=77000000")
    tools.consume("ui-orders", "ui-group", 30)
    tools("kafka-acls", "--add", "--allow-principal", "User:ui-dora", "--operation", "read", "--topic", "ui-other")


def _absent(program: Program, programs: Path) -> Outcome:
    words = f"put {' or '.join(program.patterns)} of its release into {programs}"
    return Outcome(SUITE, program.name, ABSENT, 0.0, words)


def _outcome(name: str, run: Callable[[], None]) -> Outcome:
    began, state, words = time.monotonic(), PASSED, ""
    try:
        run()
    except (AssertionError, OSError, ValueError, subprocess.SubprocessError, BrowserError, TidelogError) as error:
        state, words = FAILED, " ".join(f"{type(error).__name__}: {error}".split())[:600]
    return Outcome(SUITE, name, state, time.monotonic() - began, words)
