"""An application whose query Spark gave up: started again where only a worker was slow."""

from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from tidelog.streams import Streams, StreamsBuilder

SLOW = "terminated with exception: Python worker failed to connect back."


class Query:
    """Fails with a message, or has processed what there is."""

    def __init__(self, message: str = "") -> None:
        self.message = message
        self.processed = 0

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        if self.message:
            raise StreamingQueryException(self.message)
        self.processed += 1


def application(first: Query, *later: Query) -> Streams:
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    made = Streams(builder.build(), {"application.id": "app", "lake": "/nowhere"})
    left = iter(later)
    queries: Any = {"to-out": first}
    made._queries, made._starts = queries, {"to-out": lambda: next(left)}  # type: ignore[assignment,return-value]
    return made


def test_a_query_whose_worker_was_slow_starts_again() -> None:
    last = Query()
    streams = application(Query(SLOW), Query(SLOW), last)
    streams.process_all_available()
    streams.process_all_available()

    assert streams.queries == {"to-out": last}
    assert last.processed == 2


def test_a_query_that_fails_otherwise_or_again_and_again_fails_the_application() -> None:
    with pytest.raises(StreamingQueryException, match="broken"):
        application(Query("broken"), Query()).process_all_available()
    with pytest.raises(StreamingQueryException, match="failed to connect back"):
        application(Query(SLOW), *(Query(SLOW) for _ in range(10))).process_all_available()
