"""Work that goes on when the request that began it has been answered: one piece of a kind at a time."""

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from tidelog.console.base.errors import ConsoleError
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import TidelogError

logger = logging.getLogger("tidelog.console")
# How long the console's end waits for work, which may be killed anywhere.
_PATIENCE_S: Final = 10.0


class Jobs:
    """Runs one job after another, in a thread. All methods may be called from many threads."""

    def __init__(self, clock: Clock, ids: Ids, what: str) -> None:
        self._clock = clock
        self._ids = ids
        self._what = what
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._now: dict[str, Any] | None = None

    def close(self) -> None:
        """Wait for the job that runs, for a while."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(_PATIENCE_S)

    def start(self, asked: dict[str, Any], work: Callable[[], Any]) -> dict[str, Any]:
        """Have a job run; `asked`: what its state says of it besides. Raises `ConsoleError` 409 while one runs."""
        with self._lock:
            if self._now is not None and self._now["state"] == "running":
                raise ConsoleError(409, f"{self._what} runs already. Wait until it has ended.")
            job = {"id": self._ids.new(), **asked, "state": "running", "began_ms": self._clock.now_ms()}
            self._now = job | {"ended_ms": None, "result": None, "error": None}
            self._thread = threading.Thread(target=self._run, args=(self._now, work), name="console-job", daemon=True)
            self._thread.start()
            return dict(self._now)

    def newest(self) -> dict[str, Any] | None:
        """The job that runs, or ran last; None before the first."""
        with self._lock:
            return None if self._now is None else dict(self._now)

    def _run(self, job: dict[str, Any], work: Callable[[], Any]) -> None:
        try:
            ended = {"state": "done", "result": work()}
        except TidelogError as error:
            ended = {"state": "failed", "error": str(error)}
        except Exception:
            logger.exception("%s failed: this is a bug.", self._what)
            ended = {"state": "failed", "error": "Internal error: see the console's log."}
        with self._lock:
            job |= {**ended, "ended_ms": self._clock.now_ms()}
