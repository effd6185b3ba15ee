"""What to try after the demo: commands that work as they stand."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from rich.text import Text

from tidelog.cli.demo.screen import Screen


def what_next(screen: Screen, lake: Path, took: str) -> None:
    """Say how it went, and print commands for the demo's lake."""
    if screen.failed:
        checks = "1 check" if screen.failed == 1 else f"{screen.failed} checks"
        screen.print(Text.assemble((f"{checks} failed", "bold red"), f" in {took}. The lake is kept as it is: {lake}"))
        return
    screen.print(Text.assemble(("Done", "bold green"), f" in {took}. Try next:"))
    screen.print()
    for why, command in commands(_tidelog(), lake):
        screen.print_whole(Text(f"    # {why}", "dim"))
        screen.print_whole(Text(f"    {command}"))
    screen.print()


def commands(tidelog: str, lake: Path) -> list[tuple[str, str]]:
    """(what it shows, the command)."""
    call = f"{tidelog} --lake {shlex.quote(str(lake))}"
    return [
        ("the last three flights of each partition", f"{call} consume flights -o -3 -e -f '%k: %s\\n'"),
        ("ten hours, from 1 July on", f"{call} consume delays -o s@1372651200000 -c 10 -f '%s\\n'"),
        ("offsets and sizes", f"{call} topic describe flights"),
        ("a topic of your own", f"echo 'hello, tide' | {call} produce greetings"),
        ("everything you and the demo wrote", f"{call} check"),
    ]


def _tidelog() -> str:
    """How this program was called, as a word or two for a shell."""
    started = Path(sys.argv[0])
    if started.name != "tidelog":
        return f"{shlex.quote(_short(Path(sys.executable)))} -m tidelog"
    on_path = shutil.which("tidelog")
    return "tidelog" if on_path and Path(on_path).samefile(started) else shlex.quote(_short(started))


def _short(path: Path) -> str:
    """The path as seen from here when that is shorter, with a slash, so that a shell takes it for no other program."""
    seen = os.path.relpath(path)
    return seen if len(seen) < len(str(path)) and os.sep in seen else str(path)
