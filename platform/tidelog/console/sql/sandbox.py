"""SQL over topics: each query in a process of its own, which is killed when it is cancelled or takes too long."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import orjson

from tidelog.console.sql.pipe import READ_BYTES, FrameTooLargeError, receive, send
from tidelog.console.sql.tables import SegmentFile, TopicTable, topic_table
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.shared_threads import Rounds
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import Storage

logger = logging.getLogger("tidelog.console")

# Finished queries that are kept, and how long; the oldest goes first.
_KEPT: Final = 20
_KEPT_S: Final = 600.0
# How long a process may take until it hears the query.
_BEGIN_S: Final = 60.0
# How often the right is asked for to what a running query reads.
_ASK_EVERY_S: Final = 0.25
# Bytes of a message besides the rows that may be its last ones.
_BESIDES_ROWS: Final = 2 << 20
_GONE: Final = "You may not read any more what the query reads."
_BROKEN: Final = "The query needed more memory than a query may take, or broke DuckDB. Select less."
_OPEN_FILES: Final = 64
_ENVIRONMENT: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """What a query may take. `result`: bytes of columns and rows, as JSON; `at_once`: queries that run.

    `kept`: bytes of all results that are kept; of the queries that have ended, the oldest ones go first.
    """

    memory: int = 512 << 20
    threads: int = 2
    rows: int = 10_000
    result: int = 8 << 20
    seconds: float = 30.0
    at_once: int = 4
    kept: int = 64 << 20
    length: int = 100_000


class TooManyQueriesError(TidelogError):
    """As many queries run as may."""


class NoSuchQueryError(TidelogError):
    """No query of that id, or not the asker's, or it ended too long ago."""


class InvalidQueryError(TidelogError):
    """A query that is empty or too long, or a limit of rows that is no number from 1 on."""


@dataclass(frozen=True, slots=True)
class Readable:
    """What the sender of a query may read, as of now. `topics`: names; `state`: None where there is none to be read.

    `stands`: whether the sender may read topics that `state` gave: asked while the query runs, and for its rows.
    """

    topics: Callable[[], list[str]]
    state: Callable[[str], TopicState | None]
    stands: Callable[[Iterable[str]], bool] = lambda _: True


@dataclass
class SqlRun:
    """A query. `state`: running, done, failed or cancelled. `rows`: each as JSON; `bytes`: of these and the columns.

    `topics`: that it reads.
    """

    id: str
    owner: str
    begun_s: float
    readable: Readable
    topics: set[str] = field(default_factory=set)
    state: str = "running"
    columns: list[dict[str, str]] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    truncated: bool = False
    error: str | None = None
    ended_s: float | None = None
    process: subprocess.Popen[bytes] | None = None
    timer: threading.Timer | None = None
    bytes: int = 0

    def stop_timer(self) -> None:
        """What would end it does not any more."""
        if self.timer is not None:
            self.timer.cancel()

    def end(self, state: str, now_s: float, error: str | None = None) -> None:
        """It ended, unless it had before."""
        if self.state == "running":
            self.state, self.ended_s, self.error = state, now_s, error

    def forbid(self, now_s: float) -> None:
        """Its sender may not read any more what it reads: it has no rows."""
        self.end("failed", now_s, _GONE)
        self.state, self.error, self.rows, self.columns, self.bytes = "failed", _GONE, [], [], 0


class SqlSandbox:
    """Runs queries. All methods may be called from many threads. Use it as a context manager, or call `close`."""

    def __init__(self, storage: Storage, clock: Clock, ids: Ids, limits: SqlLimits | None = None) -> None:
        self._storage = storage
        self._clock = clock
        self._ids = ids
        self.limits = limits or SqlLimits()
        self._lock = threading.Lock()
        self._runs: dict[str, SqlRun] = {}
        self._threads: set[threading.Thread] = set()
        self._spare: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._ends = threading.Event()
        self._asking: threading.Thread | None = None
        self._rounds = Rounds(logger, "Asking for the rights of queries", self._ends.wait)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all queries."""
        with self._lock:
            self._closed = True
            runs, threads, spare = list(self._runs.values()), list(self._threads), self._spare
            threads += [] if self._asking is None else [self._asking]
        self._ends.set()
        for run in runs:
            self._stop(run, "cancelled", None)
        if spare is not None:
            _end(spare)
        for thread in threads:
            thread.join()

    def start(self, query: str, owner: str, readable: Readable, rows: int | None = None) -> str:
        """Have a query run; returns its id. Raises `InvalidQueryError`, `TooManyQueriesError`."""
        if not query.strip() or len(query) > self.limits.length:
            raise InvalidQueryError(f"Send a query of 1 to {self.limits.length} characters, not {len(query)}.")
        if rows is not None and rows < 1:
            raise InvalidQueryError(f"Invalid value {rows} for limit: give a number of rows from 1 on.")
        with self._lock:
            self._forget()
            running = sum(run.state == "running" for run in self._runs.values())
            if running >= self.limits.at_once or self._closed:
                raise TooManyQueriesError(f"{running} queries run already. Cancel one, or wait until one has ended.")
            run = SqlRun(self._ids.new(), owner, self._clock.elapsed_s(), readable)
            self._runs[run.id] = run
            most = min(rows or self.limits.rows, self.limits.rows)
            thread = threading.Thread(target=self._run, args=(run, query, most), name="sql", daemon=True)
            self._threads.add(thread)
            if self._asking is None:
                self._asking = threading.Thread(target=self._ask, name="sql-rights", daemon=True)
                self._asking.start()
        thread.start()
        return run.id

    def look(self, run_id: str, owner: str, offset: int = 0) -> dict[str, Any]:
        """How far a query is, and its rows from `offset` on, each as JSON. Raises `NoSuchQueryError`."""
        run = self._find(run_id, owner)
        self._ask_for(run)
        with self._lock:
            return {
                "state": run.state,
                "columns": run.columns,
                "rows": run.rows[offset:],
                "total": len(run.rows),
                "truncated": run.truncated,
                "seconds": round((run.ended_s or self._clock.elapsed_s()) - run.begun_s, 3),
                "error": run.error,
            }

    def cancel(self, run_id: str, owner: str) -> None:
        """End a query; nothing for one that has ended. Raises `NoSuchQueryError`."""
        self._stop(self._find(run_id, owner), "cancelled", "The query was cancelled.")

    def _find(self, run_id: str, owner: str) -> SqlRun:
        with self._lock:
            run = self._runs.get(run_id)
        if run is None or run.owner != owner:
            raise NoSuchQueryError("There is no such query; what has ended is kept for ten minutes. Send it again.")
        return run

    def _forget(self) -> None:
        now_s = self._clock.elapsed_s()
        ended = [run for run in self._runs.values() if run.ended_s is not None]
        old = [run for run in ended if now_s - (run.ended_s or 0) > _KEPT_S]
        gone = {one.id: one for one in [*old, *ended[: max(0, len(ended) - _KEPT + 1)]]}
        held = sum(run.bytes for run in self._runs.values() if run.id not in gone)
        for run in ended:  # the oldest come first
            if held > self.limits.kept and run.id not in gone:
                gone[run.id] = run
                held -= run.bytes
        for run_id in gone:
            del self._runs[run_id]

    def _stop(self, run: SqlRun, state: str, why: str | None) -> None:
        with self._lock:
            run.end(state, self._clock.elapsed_s(), why)
            process = run.process
        if process is not None:
            process.kill()

    def _process(self) -> "subprocess.Popen[bytes]":
        """A process for a query. To load DuckDB takes a while, so the next one begins to wait for the next query."""
        with self._lock:
            ready, self._spare = self._spare, None
        process = ready or _spawned(self.limits)
        with self._lock:
            if self._spare is None and not self._closed:
                self._spare = _spawned(self.limits)
        return process

    # --- rights --------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """End queries whose senders may not read any more what they read."""
        while not self._ends.wait(_ASK_EVERY_S):
            with self._lock:
                running = [run for run in self._runs.values() if run.state == "running"]
            for run in running:
                with self._rounds.round():
                    self._ask_for(run)

    def _ask_for(self, run: SqlRun) -> None:
        if run.readable.stands(tuple(run.topics)):
            return
        with self._lock:
            run.forbid(self._clock.elapsed_s())
            process = run.process
        if process is not None:
            process.kill()

    # --- a query -------------------------------------------------------------------------------------------

    def _run(self, run: SqlRun, query: str, rows: int) -> None:
        limits = self.limits
        served = _Served(self._storage, run.readable, run.topics)
        process = None
        try:
            process = self._process()
            with self._lock:
                run.process = process
                gone = run.state != "running"
            if not gone:
                self._within(run, _BEGIN_S, "DuckDB did not start. Send the query again.")
                send(process.stdin, {"query": query, "rows": rows})  # type: ignore[arg-type]
                assert receive(process.stdout)  # type: ignore[arg-type]
                self._within(run, limits.seconds, f"The query took more than {limits.seconds:g} s. Select less.")
                self._serve(run, process, served)
        except (EOFError, BrokenPipeError):
            if process is not None and run.state == "running":
                said = process.stderr.read()[-2_000:].decode(errors="replace") if process.stderr else ""
                logger.warning("The process of a query ended with %s. %s", process.wait(), said)
            self._stop(run, "failed", _BROKEN)
        except (FrameTooLargeError, TidelogError, OSError, ValueError, KeyError, TypeError) as e:
            logger.warning("A query failed.", exc_info=True)
            self._stop(run, "failed", f"The query failed: {e}")
        finally:
            run.stop_timer()
            if process is not None:
                _end(process)
            served.close()
            with self._lock:
                run.process = None
                self._threads.discard(threading.current_thread())

    def _within(self, run: SqlRun, seconds: float, late: str) -> None:
        run.stop_timer()
        run.timer = threading.Timer(seconds, self._stop, (run, "failed", late))
        run.timer.daemon = True
        run.timer.start()

    def _serve(self, run: SqlRun, process: "subprocess.Popen[bytes]", served: "_Served") -> None:
        """Answer a query's process until it is done."""
        assert process.stdin is not None
        assert process.stdout is not None
        while run.state == "running":
            raw = receive(process.stdout, self.limits.result + _BESIDES_ROWS)
            message = orjson.loads(raw)
            match message:
                case {"read": [int(number), int(start), int(size)]}:
                    send(process.stdin, served.answer(lambda: served.read(number, start, size)))
                case {"tables": [*names]}:
                    send(process.stdin, served.answer(lambda: orjson.dumps(served.tables([str(n) for n in names]))))
                case {"topics": True}:
                    send(process.stdin, served.answer(lambda: orjson.dumps(served.names())))
                case _:
                    self._take(run, message, len(raw))

    def _take(self, run: SqlRun, message: Mapping[str, Any], size: int) -> None:
        with self._lock:
            now_s = self._clock.elapsed_s()
            if run.state != "running":
                return
            if "columns" in message:
                run.bytes += size
                run.columns = [{"name": str(name), "type": str(kind)} for name, kind in message["columns"]]
            elif "rows" in message:
                for row in map(orjson.dumps, message["rows"]):
                    if run.bytes + len(row) + 1 > self.limits.result:
                        run.truncated = True
                        run.end("done", now_s)
                        break
                    run.bytes += len(row) + 1
                    run.rows.append(bytes(memoryview(row)))  # a copy: what orjson gives holds up to six times its size
            elif "failed" in message:
                run.end("failed", now_s, str(message["failed"])[:4_000])
            elif "done" in message:
                run.truncated = bool(message["truncated"])
                run.end("done", now_s)


def _spawned(limits: SqlLimits) -> "subprocess.Popen[bytes]":
    """A process that has no environment but what it needs, and no file of this one."""
    given = {
        "memory": limits.memory,
        "threads": limits.threads,
        "seconds": limits.seconds,
        "result": limits.result,
    }
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-I", "-m", "tidelog.console.sql.child", orjson.dumps(given).decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=os.sep,
        env=_ENVIRONMENT,
        start_new_session=True,
    )


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    with suppress(BrokenPipeError), process:  # closes its pipes, and waits for it
        pass


class _Served:
    """What one query may see. It is asked by one thread. `used`: gets the names of topics that it reads."""

    def __init__(self, storage: Storage, readable: Readable, used: set[str]) -> None:
        self._storage = storage
        self._readable = readable
        self._used = used
        self._files: list[SegmentFile] = []
        self._open: dict[int, Any] = {}

    def close(self) -> None:
        for one in self._open.values():
            one.close()

    def answer(self, make: Callable[[], bytes]) -> bytes:
        """What is asked for, or why there is none."""
        try:
            return b"+" + make()
        except TidelogError as e:
            return b"-" + str(e).encode()

    def names(self) -> list[str]:
        return self._readable.topics()

    def tables(self, names: list[str]) -> list[dict[str, Any]]:
        """The topics of these names, as far as they may be read. SQL's names are the same in any case of letters."""
        tables: dict[str, TopicTable] = {}
        listed: dict[str, list[str]] | None = None
        for name in names:
            state, own = self._readable.state(name), name
            if state is None:
                if listed is None:
                    listed = {}
                    for topic in self._readable.topics():
                        listed.setdefault(topic.lower(), []).append(topic)
                alike = listed.get(name.lower(), [])
                if len(alike) == 1:
                    own = alike[0]
                    state = self._readable.state(own)
            if state is not None and own.lower() not in tables:
                self._used.add(own)
                tables[own.lower()] = topic_table(own, state)
        documents = []
        for table in tables.values():
            documents.append(table.document(len(self._files)))
            self._files += table.files
        return documents

    def read(self, number: int, start: int, size: int) -> bytes:
        """Bytes of a file that `tables` gave."""
        if not (0 <= number < len(self._files) and start >= 0 and 0 <= size <= READ_BYTES):
            raise NoSuchQueryError("There is no such part of a segment.")
        file = self._open.get(number)
        if file is None:
            if len(self._open) >= _OPEN_FILES:
                self._open.pop(next(iter(self._open))).close()
            segment = self._files[number]
            file = self._open[number] = self._storage.open(segment.path, segment.size)
        file.seek(start)
        data: bytes = file.read(size)
        return data
