"""Which requests are about what runs beside the lake."""

from typing import Final

from tidelog.console.base.calls import for_all, needs
from tidelog.console.beside.brokers import brokers, mirrors
from tidelog.console.beside.connectors import connectors
from tidelog.console.beside.schemas import schemas, subject
from tidelog.operations.rights import Right
from tidelog.server.routes import Route

_DESCRIBE: Final = needs(Right.DESCRIBE_CLUSTER)
_CONNECTORS: Final = needs(Right.DESCRIBE_CONNECTOR)

BESIDE_ROUTES: Final = (
    Route("GET", "/api/brokers", brokers, _DESCRIBE),
    Route("GET", "/api/schemas", schemas, for_all),
    Route("GET", "/api/schemas/{subject}", subject, for_all),
    Route("GET", "/api/connectors", connectors, _CONNECTORS),
    Route("GET", "/api/mirrors", mirrors, _DESCRIBE),
)
