"""The console as an ASGI application: its page, guards of browsers, and the status of each error."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, ClassVar, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.console.base.errors import ConsoleError
from tidelog.console.guard import CSRF_HEADER, HEADERS, require_own_page, require_token
from tidelog.console.routes import ROUTES
from tidelog.console.sql.sandbox import InvalidQueryError, NoSuchQueryError, TooManyQueriesError
from tidelog.log.base.errors import (
    GroupNotEmptyError,
    GroupNotFoundError,
    InvalidConfigError,
    InvalidGroupError,
    InvalidPartitionsError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTopicError,
    LakeFollowsError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    RecordTooLargeError,
    TidelogError,
    TopicExistsError,
    TransactionalIdNotFoundError,
    UnknownMemberError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.base.typed_values import listed
from tidelog.server.app import App, HttpRefusal, Refusals, method_of
from tidelog.server.connections import HttpBounds
from tidelog.server.errors import RequestRefusedError
from tidelog.server.lasting import while_it_stands
from tidelog.server.logins import HttpLogins
from tidelog.server.requests import from_json, path_of
from tidelog.server.routes import Route, Routes

_LOG: Final = logging.getLogger("tidelog.console")

_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/vnd.microsoft.icon",
    "woff2": "font/woff2",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
    "map": "application/json",
}
# Bytes of a body, where its route has no bound of its own.
_MOST_BODY: Final = 2**20
_NO_PATH: Final = "The console has nothing at this path."
_NO_METHOD: Final = "This path does not take {method}."
_STATUSES: Final[tuple[tuple[type[TidelogError], int], ...]] = (
    (UnknownTopicError, 404),
    (UnknownPartitionError, 404),
    (TopicExistsError, 409),
    (LakeFollowsError, 409),
    (GroupNotFoundError, 404),
    (TransactionalIdNotFoundError, 404),
    (NoSuchQueryError, 404),
    (GroupNotEmptyError, 409),
    (UnknownMemberError, 409),  # offsets are set of a group that has members
    (InvalidGroupError, 400),
    (InvalidQueryError, 400),
    (TooManyQueriesError, 429),
    (RecordTooLargeError, 413),
    (InvalidTopicError, 400),
    (InvalidConfigError, 400),
    (InvalidPartitionsError, 400),
    (InvalidRecordError, 400),
    (InvalidTimestampError, 400),
    (OffsetOutOfRangeError, 400),
    (PolicyViolationError, 400),
    (TidelogError, 500),
)


@dataclass(frozen=True, slots=True)
class _PageFile:
    body: bytes
    media_type: str
    tag: str


class PageFiles:
    """All files of the page, read once. Their names are the paths: nothing else of the disk can be asked for."""

    def __init__(self, root: Traversable | None = None) -> None:
        self._files: dict[str, _PageFile] = {}
        self._read(root or files("tidelog.console").joinpath("page"), "")

    def _read(self, folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                self._read(entry, f"{prefix}{entry.name}/")
            elif (media_type := _TYPES.get(entry.name.rpartition(".")[2])) is not None:
                body = entry.read_bytes()
                self._files[prefix + entry.name] = _PageFile(body, media_type, f'"{sha256(body).hexdigest()[:32]}"')

    def answer(self, path: str, if_none_match: str | None) -> Response:
        """A file, or 304 where the browser has it. `path`: begins with "/"; `if_none_match`: that header."""
        file = self._files.get(path[1:] or "index.html")
        if file is None:
            raise ConsoleError(404, _NO_PATH)
        headers = {"etag": file.tag, "cache-control": "no-cache"}
        if if_none_match is not None and file.tag in (tag.removeprefix("W/") for tag in listed(if_none_match)):
            return Response(None, 304, headers)
        return Response(file.body, 200, headers, file.media_type)


def _refusal(error: TidelogError, status: int, code: int = 0) -> HttpRefusal:
    """The answer, in a text that UTF-8 can hold."""
    return HttpRefusal(status, str(error).encode("utf-8", "replace").decode(), code)


def _by_kind(status: int, error: TidelogError) -> HttpRefusal:
    if status == 500:
        _LOG.warning("A request failed in the store: error=%s: %s", type(error).__name__, error)
    return _refusal(error, status, max(0, error.kafka_code))


class ConsoleApp(App[ConsoleCall]):
    """Static files, and routes below /api. `logins`: None lets everyone do everything."""

    logger: ClassVar[logging.Logger] = _LOG
    refusals: ClassVar[Refusals] = (
        (ConsoleError, lambda error: _refusal(error, error.status, error.code)),
        (RequestRefusedError, lambda error: _refusal(error, error.status)),
        *((kind, partial(_by_kind, status)) for kind, status in _STATUSES),
    )

    def __init__(self, console: Console, bounds: HttpBounds | None = None, logins: HttpLogins | None = None) -> None:
        routes = Routes(ROUTES, _NO_PATH, _NO_METHOD, cuts_slashes=False)
        bounds = replace(bounds or HttpBounds(), body=_MOST_BODY)
        super().__init__(routes, partial(ConsoleCall, console=console), bounds, logins)
        self._console = console
        self._page = PageFiles()

    async def handled(self, request: Request) -> tuple[str, Response]:
        """The name of the request, and its answer: a file of the page, which is for everyone, or what a route gives."""
        method, path = method_of(request), path_of(request)
        name = "" if path == "/api" or path.startswith("/api/") else "page"
        try:
            if name == "page":
                response = self._file(method, path, request)
            else:
                require_own_page(method, request.headers)
                name, response = await super().handled(request)
        except ConsoleError as error:
            response = self.failed(error, self.media_type)
        response.headers.update(HEADERS)
        response.headers.setdefault("cache-control", "no-store")
        return name, response

    def _file(self, method: str, path: str, request: Request) -> Response:
        if method != "GET":
            raise ConsoleError(405, _NO_METHOD.format(method=method))
        return self._page.answer(path, request.headers.get("if-none-match"))

    def admit(self, request: Request, route: Route[ConsoleCall], call: ConsoleCall) -> None:
        """Refuse what does not come from the console's page, and changes by a console that is read-only."""
        if route.method != "GET":
            token = self._console.csrf_token(call.client.principal)
            require_token(request.headers.get(CSRF_HEADER), token)
        if call.changes and self._console.settings.read_only:
            raise ConsoleError(403, "This console is read-only (--read-only).")

    def read(self, request: Request, body: bytes) -> Any:
        """A body's JSON."""
        return from_json(request, body, orjson.loads)

    def work(self, route: Route[ConsoleCall], call: ConsoleCall) -> Any:
        """What the handler gives; the right to an answer that lasts is asked for again as long as it does."""
        answer = super().work(route, call)
        if isinstance(answer, StreamingResponse) and call.client.now is not None:
            again = lambda: route.right(replace(call, client=call.rights.now().client))  # noqa: E731
            answer.body_iterator = while_it_stands(answer.body_iterator, again)
        return answer

    def json(self, value: Any) -> bytes:
        """A value as JSON."""
        return orjson.dumps(value)
