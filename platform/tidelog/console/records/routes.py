"""Which requests are about records."""

from typing import Final

from tidelog.console.base.calls import needs
from tidelog.console.records.downloads import download
from tidelog.console.records.reading import raw, record, records
from tidelog.console.records.tailing import tail
from tidelog.console.records.writing import MOST_BODY, produce
from tidelog.operations.rights import Right
from tidelog.server.routes import Route

_TOPIC: Final = "/api/topics/{topic}"
_READ: Final = needs(Right.READ_RECORDS)

RECORD_ROUTES: Final = (
    Route("GET", f"{_TOPIC}/records", records, _READ),
    Route("GET", f"{_TOPIC}/records/{{partition}}/{{offset}}", record, _READ),
    Route("GET", f"{_TOPIC}/records/{{partition}}/{{offset}}/raw", raw, _READ),
    Route("GET", f"{_TOPIC}/tail", tail, _READ),
    Route("GET", f"{_TOPIC}/download", download, _READ),
    Route("POST", f"{_TOPIC}/records", produce, needs(Right.WRITE_RECORDS), MOST_BODY),
)
