"""How a command fails: one message on stderr, and an exit code that scripts can rely on."""

import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import typer
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from tidelog.commands.kafka_habits import hints
from tidelog.commands.terminal import say, shows_unicode
from tidelog.log.base.errors import TidelogError, UnknownTopicError
from tidelog.server.process.logs import lines_to_stderr

FAILED = 1
WRONG_USAGE = 2
CHECK_FOUND_ERRORS = 3
STILL_WAITING = 4
INTERRUPTED = 130

EXIT_CODES = (
    f"Exit codes: 0 done; {FAILED} the operation failed; {WRONG_USAGE} wrong usage; {CHECK_FOUND_ERRORS} 'check' or"
    f" 'doctor' found errors; {STILL_WAITING} 'forget' is done, but files still wait to be deleted;"
    f" {INTERRUPTED} interrupted by Ctrl-C (143 by SIGTERM). A reader that closes the pipe early, as head does, is no"
    " failure."
)
R = TypeVar("R")


class UsageProblemError(Exception):
    """The command line can't be executed as it is; typer's own errors cover the rest."""


class JobFailedError(Exception):
    """A job failed, or a part of it; the message says why, and what to do."""


class _Reporting:
    """What turns errors of a command into messages and exit codes."""

    def main(self, *args: Any, **more: Any) -> Any:
        """Run a command line, and end the process."""
        return _main(super().main, *args, **more)  # type: ignore[misc]  # typer's class comes next

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises `typer.Exit` with the code of a failure."""
        with _failures_reported(ctx):
            return super().invoke(ctx)  # type: ignore[misc]  # as above


class CommandGroup(_Reporting, TyperGroup):
    """The group of all commands."""


class LoneCommand(_Reporting, TyperCommand):
    """A command that is a program of its own, as a job is."""


def _main(run: Callable[..., Any], args: Sequence[str] | None = None, **more: Any) -> Any:
    """`run` a command's `main`: what is wrong with the command line is JSON where JSON is asked for."""
    given = sys.argv[1:] if args is None else list(args)
    if not asks_for_json(given) or not more.get("standalone_mode", True):
        try:
            return run(args, **more)
        except SystemExit as e:
            for one in hints(given) if e.code == WRONG_USAGE else ():
                say(one, stderr=True)
            raise
    try:
        code = run(args, **{**more, "standalone_mode": False})
    except typer.Abort:
        sys.exit(FAILED)
    except Exception as e:
        words = getattr(e, "format_message", None)  # typer's own errors of a command line have no public base
        if words is None:
            raise
        complain(UsageProblemError(" ".join([words(), *hints(given)])), as_json=True)
        sys.exit(WRONG_USAGE)
    sys.exit(code if isinstance(code, int) else 0)


def exit_code_of(app: Callable[..., Any], name: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command line (the process's own unless `arguments` are given); its exit code (`EXIT_CODES`)."""
    code: object = 0
    prepare_streams()
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        app(args=given, prog_name=name)
    except SystemExit as e:
        # Help that is printed to a closed pipe ends the process by an error's code.
        code = 0 if isinstance(e.__context__, BrokenPipeError) else e.code
    except Exception as e:
        complain(e, debug="--debug" in given, as_json=asks_for_json(given))
        code = FAILED
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
    except OSError as e:
        silence_stdout()
        if code == 0:
            complain(e, as_json=asks_for_json(given))
            code = FAILED
    return code if isinstance(code, int) else FAILED if code else 0


def prepare_streams() -> None:
    """Give a process the streams that it was started without, and let none fail at a character that it can't show."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open as long as the process
        elif mode == "w" and isinstance(stream, io.TextIOWrapper) and not shows_unicode(stream):
            stream.reconfigure(errors="replace")


@contextmanager
def _failures_reported(ctx: Any) -> Iterator[None]:
    with _logging_to_stderr(lambda: ctx.obj):
        try:
            yield
            sys.stdout.flush()
        except BrokenPipeError:
            silence_stdout()
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except (UsageProblemError, JobFailedError, TidelogError, OSError) as e:
            complain(e, debug=_debug(ctx), as_json=bool(getattr(ctx.obj, "as_json", False)))
            code = WRONG_USAGE if isinstance(e, UsageProblemError) else FAILED
            raise typer.Exit(code) from e


def _debug(ctx: Any) -> bool:
    return bool(getattr(ctx.obj, "debug", False))


def message_of(error: Exception) -> str:
    """An error in words, for a person."""
    if isinstance(error, OSError):
        about = f"{error.filename}: " if error.filename else ""
        return f"{about}{error.strerror or error}. The operating system refused; correct that and try again."
    if isinstance(error, TidelogError | UsageProblemError | JobFailedError):
        return str(error)
    return (
        f"Unexpected {type(error).__name__}: {error}. This is a mistake in tidelog, not yours: run the command again"
        " with --debug to see where it happened, and report that."
    )


def error_json(error: Exception) -> dict[str, Any]:
    """An error as programs read it: its class, Kafka's code for it (-1: none), whether a repeat may help, the words."""
    return {
        "type": type(error).__name__,
        "kafka_code": getattr(error, "kafka_code", -1),
        "retriable": getattr(error, "retriable", False),
        "message": message_of(error),
    }


def complain(error: Exception, *, about: str = "", debug: bool = False, as_json: bool = False) -> None:
    """Print an error to stderr, `as_json` as a document in one line: {"error": {"type", "message", ...}}.

    `about`: what it is about, before the error's own words. With `debug`, where the one being handled happened, too.
    """
    if debug:
        traceback.print_exc()
    if as_json:
        told = error_json(error)
        document = {"error": {**told, "message": f"{about}{told['message']}"}}
        sys.stderr.write(json.dumps(document, ensure_ascii=not shows_unicode(sys.stderr)) + "\n")
    else:
        say(Text.assemble(("error: ", "bold red"), f"{about}{message_of(error)}"), stderr=True)


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether a command line says `--format json`, the last word on it."""
    words = [*arguments, ""]
    said = [b if a == "--format" else a.partition("=")[2] for a, b in pairwise(words) if a.split("=")[0] == "--format"]
    return said[-1:] == ["json"]


def silence_stdout() -> None:
    """Drop what is still buffered: the pipe's reader is gone."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # a stream without a descriptor, as tests put in place
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


class _Notes(logging.Handler):
    """Prints what the log says in the background; tracebacks only where they were asked for.

    `session`: what the command line says, once it is read: lines as those of what serves where it names their format.
    """

    def __init__(self, session: Any) -> None:
        super().__init__()
        self._session = session
        self._lines: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line to stderr."""
        session = self._session()
        if record.levelno < logging.getLevelName((getattr(session, "log_level", None) or "warning").upper()):
            return
        log_format = getattr(session, "log_format", None)
        if log_format is not None:
            self._lines = self._lines or lines_to_stderr(log_format)
            self._lines.emit(record)
            return
        if getattr(session, "debug", False) and record.exc_info:
            traceback.print_exception(*record.exc_info)
        text = record.getMessage()
        if record.exc_info and record.exc_info[1]:
            text = f"{text} {record.exc_info[1]}"
        say(Text.assemble((f"{record.levelname.lower()}: ", "bold yellow"), text), stderr=True)

    def close(self) -> None:
        """Write what was counted and not written."""
        if self._lines is not None:
            self._lines.close()
        super().close()


@contextmanager
def _logging_to_stderr(session: Any) -> Iterator[None]:
    logger, handler = logging.getLogger("tidelog"), _Notes(session)
    level = logger.level
    logger.addHandler(handler)
    try:
        yield
    finally:
        handler.close()
        logger.removeHandler(handler)
        logger.setLevel(level)


def each_topic(names: Iterable[str], look: Callable[[str], R]) -> dict[str, R | TidelogError]:
    """What a look at each topic finds, or why it fails; topics that are deleted meanwhile are left out.

    Raises errors that go away by themselves, such as those of a store that gives no answer.
    """
    by_topic: dict[str, R | TidelogError] = {}
    for name in names:
        try:
            by_topic[name] = look(name)
        except UnknownTopicError:
            continue
        except TidelogError as e:
            if e.retriable:
                raise
            by_topic[name] = e
    return by_topic


def tell_broken(found: Mapping[str, object], *, as_json: bool) -> None:
    """Say which topics could not be opened and why. Raises `typer.Exit` with the code of a failure if any."""
    broken = {name: e for name, e in found.items() if isinstance(e, TidelogError)}
    for name, error in broken.items():
        complain(error, about=f"Topic '{name}' can't be opened. ", as_json=as_json)
    if broken:
        raise typer.Exit(FAILED)
