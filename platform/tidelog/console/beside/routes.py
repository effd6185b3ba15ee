"""Which requests are about what runs beside the lake."""

from typing import Final

from tidelog.access.model import AclOperation
from tidelog.console.base.routing import ConsoleRoute, for_all, of_cluster
from tidelog.console.beside.brokers import brokers, mirrors
from tidelog.console.beside.connectors import connectors
from tidelog.console.beside.schemas import schemas, subject

_DESCRIBE: Final = of_cluster(AclOperation.DESCRIBE)

BESIDE_ROUTES: Final = (
    ConsoleRoute("GET", "/api/brokers", brokers, _DESCRIBE),
    ConsoleRoute("GET", "/api/schemas", schemas, for_all),
    ConsoleRoute("GET", "/api/schemas/{subject}", subject, for_all),
    ConsoleRoute("GET", "/api/connectors", connectors, _DESCRIBE),
    ConsoleRoute("GET", "/api/mirrors", mirrors, _DESCRIBE),
)
