"""The application of a worker's REST API."""

import logging
from typing import ClassVar, Final

from starlette.requests import Request

from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.api.routes import RestCall, rest_routes
from tidelog.connect.data.errors import ConnectError
from tidelog.log.base.errors import TidelogError
from tidelog.operations.connector_configs import (
    ConnectorExistsError,
    ConnectorNotFoundError,
    ConnectorTaskNotFoundError,
)
from tidelog.server.app import App, HttpRefusal, Refusals, by_status
from tidelog.server.connections import HttpBounds
from tidelog.server.errors import RequestRefusedError
from tidelog.server.logins import HttpLogins
from tidelog.server.requests import refuse_other_sites
from tidelog.server.routes import Route, Routes

_LOG: Final = logging.getLogger("tidelog.connect")


def _failed_in_store(error: TidelogError) -> HttpRefusal:
    _LOG.warning("A request failed in the store: error=%s: %s", type(error).__name__, error)
    return HttpRefusal(500, str(error))


class RestApp(App[RestCall]):
    """The REST API as an ASGI application. `logins`: None lets everyone do everything."""

    logger: ClassVar[logging.Logger] = _LOG
    rights_first: ClassVar[bool] = True
    refusals: ClassVar[Refusals] = (
        (RequestRefusedError, by_status),
        ((ConnectorNotFoundError, ConnectorTaskNotFoundError), lambda error: HttpRefusal(404, str(error))),
        (ConnectorExistsError, lambda error: HttpRefusal(409, str(error))),
        (ConnectError, lambda error: HttpRefusal(400, str(error))),
        (TidelogError, _failed_in_store),
    )

    def __init__(
        self, operations: ConnectOperations, bounds: HttpBounds | None = None, logins: HttpLogins | None = None
    ) -> None:
        super().__init__(Routes(rest_routes(operations)), RestCall, bounds, logins)

    def counted(self, route: Route[RestCall]) -> str:
        """How metrics name a request: by its path alone."""
        return route.path

    def admit(self, request: Request, route: Route[RestCall], call: RestCall) -> None:  # noqa: ARG002 - a step
        """Refuse what other sites' pages have a browser change."""
        if call.changes:
            refuse_other_sites(request, "connectors")
