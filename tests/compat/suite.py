"""What the suites of other projects have in common: tests, how each ended, and commands whose output is kept."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
# A program that no package source has, and that the user has not put here.
ABSENT = "absent"
# The protocols of groups, by Kafka's names, and the variable by which suites of Confluent's clients choose one.
CLASSIC, CONSUMER = "classic", "consumer"
GROUP_PROTOCOL = "TEST_CONSUMER_GROUP_PROTOCOL"


@dataclass(frozen=True)
class Outcome:
    """How a test ended, and its own words. `SKIPPED`: it says itself that it can't run here."""

    suite: str
    test: str
    state: str
    took_s: float
    words: str = ""


class ToolError(Exception):
    """A suite can't be built or run at all; says what to do."""


def named(test: str, protocol: str) -> str:
    """A test's name in the list, by the protocol of its groups."""
    return test if protocol == CLASSIC else f"{test}, group.protocol={protocol}"


def tried(
    suite: str, tests: Mapping[str, Callable[[], object]], only: str, *, in_turn: bool = False
) -> Iterator[Outcome]:
    """Try each test with `only` in its name. `in_turn`: each needs those before it, so a failure is the last."""
    for test, check in tests.items():
        if only not in test:
            continue
        began, words, state = time.monotonic(), "", PASSED
        try:
            check()
        except (AssertionError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            words, state = f"{type(error).__name__}: {error}"[-3000:], FAILED
        yield Outcome(suite, test, state, time.monotonic() - began, words)
        if in_turn and state == FAILED:
            return


def run(
    command: Sequence[str | Path],
    log: Path,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit_s: float = 1800,
) -> int | None:
    """Run a command to its end, with what it prints in `log`; its exit code, or None when it was killed for its time.

    Its children end with it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


def built(command: Sequence[str | Path], log: Path, *, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Run a step of a build. Raises `ToolError` with the end of what it printed."""
    if run(command, log, cwd=cwd, env=env):
        words = log.read_text(encoding="utf-8", errors="replace").splitlines()[-30:]
        raise ToolError("\n".join([f"{' '.join(map(str, command))} failed ({log}):", *words]))


def run_block(code: str, folder: Path, environment: Mapping[str, str], instead: Mapping[str, str]) -> str:
    """Run a page's block for a shell, with the texts of `instead` replaced; what it printed.

    Raises `AssertionError` with its words where it fails.
    """
    for text, other in instead.items():
        code = code.replace(text, other)
    printed, errors = folder / "printed.log", folder / "errors.log"
    line = ["bash", "-euo", "pipefail", "-c", code]
    with printed.open("w") as out, errors.open("w") as err:  # no pipes: what stays up would hold them
        done = subprocess.run(line, cwd=folder, env=environment, stdout=out, stderr=err, timeout=1800, check=False)
    assert done.returncode == 0, f"{printed.read_text()}\n{errors.read_text()}"
    return printed.read_text()


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nothing listens at."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
