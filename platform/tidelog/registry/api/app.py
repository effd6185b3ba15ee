"""The registry's application: its routes, content types, and errors with Confluent's codes."""

import json
import logging
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

from starlette.requests import Request

from tidelog.log.base.errors import OutcomeUnknownError, TidelogError
from tidelog.operations.schemas.errors import store_failure
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.registry.api import schemas, settings, subjects
from tidelog.registry.api.calls import CONTEXT, ApiCall, SchemaText
from tidelog.registry.api.guard import answered
from tidelog.schemas.base.errors import RegistryError
from tidelog.server.app import App, HttpRefusal, Refusals
from tidelog.server.connections import HttpBounds
from tidelog.server.errors import RequestRefusedError
from tidelog.server.logins import HttpLogins
from tidelog.server.requests import refuse_other_sites
from tidelog.server.routes import Answer, Route, Routes

ROWS: Final = (*subjects.ROUTES, *schemas.ROUTES, *settings.ROUTES)
# Each path is also below /contexts/{context}/.
ROUTES: Final = Routes(
    (*ROWS, *(replace(route, path=f"contexts/{{{CONTEXT}}}/{route.path}") for route in ROWS if route.path))
)
_LOG: Final = logging.getLogger("tidelog.registry")

V1: Final = "application/vnd.schemaregistry.v1+json"
# What answers are written as, the first where the client takes any; requests may be plain bytes, too.
PRODUCES: Final = (V1, "application/vnd.schemaregistry+json", "application/json")
CONSUMES: Final = (*PRODUCES, "application/octet-stream")
# Codes of the API for refusals that HTTP knows by its own.
_CODES: Final = {413: 42209, 429: 42901}


def _by_code(error: RegistryError) -> HttpRefusal:
    return HttpRefusal(error.status, str(error), error.code)


def _by_http(error: RequestRefusedError) -> HttpRefusal:
    return _by_code(RegistryError(_CODES.get(error.status, error.status), str(error)))


def _failed_in_store(error: TidelogError) -> HttpRefusal:
    refusal = _by_code(store_failure(error))
    if refusal.status < 500:
        return refusal
    if isinstance(error, OutcomeUnknownError):
        return replace(refusal, message=f"Write to the store timed out: {error}")
    _LOG.warning("A request failed in the store.", exc_info=error)
    return replace(refusal, message=f"Error in the store: {error}")


class RegistryApp(App[ApiCall]):
    """Confluent's API over a lake's registry, as an ASGI application. `logins`: None lets everyone do everything."""

    logger: ClassVar[logging.Logger] = _LOG
    media_type: ClassVar[str] = V1
    bounds_reads: ClassVar[bool] = False  # writes are decided one after the other, and reads go on
    refusals: ClassVar[Refusals] = (
        (RequestRefusedError, _by_http),
        (RegistryError, _by_code),
        (TidelogError, _failed_in_store),
    )

    def __init__(self, log: RegistryLog, bounds: HttpBounds | None = None, logins: HttpLogins | None = None) -> None:
        super().__init__(ROUTES, partial(ApiCall, log=log), bounds, logins)

    def audited(self, route: Route[ApiCall]) -> str:
        """How the audit and metrics name a request: by its handler."""
        return route.handler.__name__

    def accepted(self, accept: str) -> str:
        """The content type that the header prefers (RFC 9110, 12.5.1). Raises `RegistryError` 406."""
        choices: list[tuple[float, int, str]] = []
        for listed in accept.split(","):
            name, *parameters = (part.strip().lower() for part in listed.split(";"))
            weights = [part.removeprefix("q=") for part in parameters if part.startswith("q=")]
            try:
                weight = float(weights[0]) if weights else 1.0
            except ValueError:
                weight = 0.0
            for place, own in enumerate(PRODUCES):
                if weight > 0 and name in (own, "*/*", "application/*", ""):
                    choices.append((-weight, place, own))
                    break
        if not choices:
            raise RegistryError(406, "HTTP 406 Not Acceptable")
        return min(choices)[2]

    def admit(self, request: Request, route: Route[ApiCall], call: ApiCall) -> None:  # noqa: ARG002 - a step
        """Refuse what other sites' pages have a browser send, and bodies of other types."""
        if request.method != "GET":
            refuse_other_sites(request, "schemas")
        named = request.headers.get("content-type", CONSUMES[-1]).split(";")[0].strip().lower()
        if route.most_bytes != 0 and named not in CONSUMES:
            raise RequestRefusedError(415, "HTTP 415 Unsupported Media Type")

    def read(self, request: Request, body: bytes) -> Any:  # noqa: ARG002 - a step
        """A body as it is."""
        return body

    def work(self, route: Route[ApiCall], call: ApiCall) -> Any:
        """What the handler gives, for a client that may have it."""
        answer = answered(route, call)
        return Answer(value=answer.text.encode()) if isinstance(answer, SchemaText) else answer

    def json(self, value: Any) -> bytes:
        """A value as JSON without spaces."""
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
