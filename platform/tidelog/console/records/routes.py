"""Which requests are about records."""

from typing import Final

from tidelog.access.model import AclOperation
from tidelog.console.base.calls import of_topic
from tidelog.console.records.downloads import download
from tidelog.console.records.reading import raw, record, records
from tidelog.console.records.tailing import tail
from tidelog.console.records.writing import MOST_BODY, produce
from tidelog.server.routes import Route

_TOPIC: Final = "/api/topics/{topic}"
_READ: Final = of_topic(AclOperation.READ)

RECORD_ROUTES: Final = (
    Route("GET", f"{_TOPIC}/records", records, _READ),
    Route("GET", f"{_TOPIC}/records/{{partition}}/{{offset}}", record, _READ),
    Route("GET", f"{_TOPIC}/records/{{partition}}/{{offset}}/raw", raw, _READ),
    Route("GET", f"{_TOPIC}/tail", tail, _READ),
    Route("GET", f"{_TOPIC}/download", download, _READ),
    Route("POST", f"{_TOPIC}/records", produce, of_topic(AclOperation.WRITE), MOST_BODY),
)
