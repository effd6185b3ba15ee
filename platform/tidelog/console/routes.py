"""All routes of the console, by its parts."""

from typing import Final

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.beside.routes import BESIDE_ROUTES
from tidelog.console.groups.routes import GROUP_ROUTES
from tidelog.console.records.routes import RECORD_ROUTES
from tidelog.console.sql.routes import SQL_ROUTES
from tidelog.console.topics.routes import TOPIC_ROUTES
from tidelog.console.upkeep.routes import UPKEEP_ROUTES
from tidelog.server.routes import Route

ROUTES: Final[tuple[Route[ConsoleCall], ...]] = (
    *TOPIC_ROUTES,
    *RECORD_ROUTES,
    *GROUP_ROUTES,
    *UPKEEP_ROUTES,
    *BESIDE_ROUTES,
    *SQL_ROUTES,
)
