"""Programs that their projects release by themselves: where a user has put them, and how each starts."""

import socket
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from support.waiting import eventually

_STARTS_WITHIN_S = 300.0
_JAVA = ("java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Program(NamedTuple):
    """A program: the files of its release, by patterns below the folder of programs; the first one is started."""

    name: str
    patterns: tuple[str, ...]
    options: tuple[str, ...] = ()

    def command(self, programs: Path) -> Sequence[str | Path] | None:
        """Its command line; None where it is not there."""
        for pattern in self.patterns:
            for path in sorted(programs.glob(pattern)):
                return [*_JAVA, *self.options, "-jar", path] if path.suffix == ".jar" else [path]
        return None


KCCTL = Program("kcctl", ("kcctl*/**/quarkus-run.jar", "kcctl*/bin/kcctl"))
KAFDROP = Program("kafdrop", ("kafdrop-*.jar",), ("--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",))
AKHQ = Program("akhq", ("akhq-*.jar",))


def free_port() -> int:
    """A port of loopback that nothing listens to now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def await_page(url: str, ended: Sequence[object] = ()) -> None:
    """Wait until a page is served."""

    def served() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    eventually(served, f"{url} is served", _STARTS_WITHIN_S)
