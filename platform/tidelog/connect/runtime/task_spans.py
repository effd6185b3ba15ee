"""What traces say of a task: each batch that it puts or writes."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tidelog.connect.runtime.conversion import RawRecord
from tidelog.log.base.request_ids import Attributes
from tidelog.server.telemetry.tracing import Tracing, traced, traceparents

_HEADER = "traceparent"


class TaskSpans:
    """The traces of one run. `named`: it; `tracing`: where they go, None for nowhere; `now_s`: an elapsed clock."""

    def __init__(self, tracing: Tracing | None, named: str, now_s: Callable[[], float]) -> None:
        self._tracing = tracing
        self._named = named
        self._now_s = now_s

    @contextmanager
    def batch(self, action: str, raws: Iterable[RawRecord], count: int) -> Iterator[None]:
        """Meanwhile a batch is put or written, which goes on in the trace of its records, or names those of several."""
        if self._tracing is None or not count:
            yield
            return
        start_s, error = self._now_s(), ""
        headers = (header for raw in raws for header in raw.headers)
        parents = traceparents(value for name, value in headers if name == _HEADER and isinstance(value, bytes))
        try:
            yield
        except Exception as e:
            error = type(e).__name__  # what it says may be secret
            raise
        finally:
            about: Attributes = {"tidelog.connector_task": self._named, "messaging.batch.message_count": count}
            traced(self._tracing, f"{action} {self._named}", start_s, self._now_s(), about, parents, error)


NO_SPANS = TaskSpans(None, "", float)
