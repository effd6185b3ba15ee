"""Calls of the command line in this process, on lakes in memory."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from support.nursery import ForkedPython
from typer.main import get_command
from typer.testing import CliRunner, Result

from tidelog.cli.main import app
from tidelog.commands.failures import FAILED
from tidelog.log.lake import Lake

WAIT_S = 60

_names = iter(range(1 << 30))


def lake_address() -> str:
    """A lake of its own for a test; it is not created yet."""
    return f"memory://cli-{next(_names)}"


def cli(*args: str, stdin: str | bytes = b"", env: Mapping[str, str | None] | None = None) -> Result:
    """Run `tidelog ARGS`, in an environment without TIDELOG_LAKE unless `env` has it."""
    runner, code = CliRunner(), 0
    with _ends_in_time(), runner.isolation(stdin, {"TIDELOG_LAKE": None, **(env or {})}) as (out, err, both):
        try:
            _tidelog().main(args=list(args), prog_name="tidelog")
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else FAILED if e.code else 0
        sys.stdout.flush()
        sys.stderr.flush()
        return Result(runner, out.getvalue(), err.getvalue(), both.getvalue(), None, code, None)


@cache
def _tidelog() -> Any:
    """All commands; `CliRunner.invoke` makes them again for each call, which takes longer than most calls."""
    return get_command(app)


@contextmanager
def _ends_in_time() -> Iterator[None]:
    """Fail a command that goes on for ever, as a consumer does that overlooks its end."""

    def too_long(*_: object) -> None:
        raise AssertionError(f"the command still runs after {WAIT_S} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(WAIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def done(*args: str, stdin: str | bytes = b"", env: Mapping[str, str | None] | None = None) -> Result:
    """Run a command that must succeed."""
    result = cli(*args, stdin=stdin, env=env)
    assert result.exit_code == 0, result.output
    return result


def refused(code: int, *args: str, stdin: str | bytes = b"", env: Mapping[str, str | None] | None = None) -> str:
    """Run a command that must fail with `code` and print nothing to stdout; what it says, on one line."""
    result = cli(*args, stdin=stdin, env=env)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.replace("│", " ").split())


def answer(*args: str, stdin: str | bytes = b"") -> Any:
    """The one JSON document that a command prints with --format json."""
    return json.loads(done(*args, "--format", "json", stdin=stdin).stdout)


def open_lake(address: str) -> Lake:
    """The lake, opened by this test itself."""
    return Lake(address)


def consumed(address: str, topic: str, *args: str) -> list[dict[str, Any]]:
    """The topic's records as `consume -J` prints them."""
    out = done("consume", topic, "-e", "-q", "-J", "--lake", address, *args).stdout
    return [json.loads(line) for line in out.splitlines()]


def process(
    *args: str, start: "Callable[..., subprocess.Popen[bytes]]" = ForkedPython, **more: Any
) -> "subprocess.Popen[bytes]":
    """`python -m tidelog ARGS` as a process of its own, its streams in pipes unless `more` says otherwise.

    `start`: `subprocess.Popen` where the true command is what is tested.
    """
    env = {k: v for k, v in os.environ.items() if k != "TIDELOG_LAKE"}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Ctrl-C ends it, even where the tests run in the background of a shell that has it ignored; it ends a fork always.
    minds = {} if start is ForkedPython else {"preexec_fn": partial(signal.signal, signal.SIGINT, signal.SIG_DFL)}
    return start([sys.executable, "-m", "tidelog", *args], env=env, **{**streams, **minds, **more})


def lines_of(stream: Any) -> Iterator[str]:
    """Lines of a process's output as they come."""
    for line in iter(stream.readline, b""):
        yield line.decode().rstrip("\n")
