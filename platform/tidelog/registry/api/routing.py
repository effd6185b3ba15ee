"""All routes of the API, by its parts."""

from dataclasses import replace
from typing import Final

from tidelog.registry.api import schemas, settings, subjects
from tidelog.registry.api.calls import CONTEXT
from tidelog.server.routes import Routes

ROWS: Final = (*subjects.ROUTES, *schemas.ROUTES, *settings.ROUTES)
# Each path is also below /contexts/{context}/.
ROUTES: Final = Routes(
    (*ROWS, *(replace(route, path=f"contexts/{{{CONTEXT}}}/{route.path}") for route in ROWS if route.path))
)
