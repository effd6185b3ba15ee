"""Requests of HTTP by name: each line of the log that a request leads to says which it was, and so does the answer."""

import logging
from itertools import count
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidelog.log.base.request_ids import REQUEST, RequestId, one_word

_LOG: Final = logging.getLogger("tidelog.web")
_HEADER: Final = b"x-request-id"


class RequestIds:
    """An application whose requests have ids. A client that names a request in `X-Request-Id` finds that in the log.

    Other requests are numbered. The answer has the header, too. At level DEBUG each answer is a line of the log.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._numbers = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        named = one_word(headers.get(_HEADER, b"").decode("latin-1")) or str(next(self._numbers))
        host, port = scope.get("client") or ("", 0)
        agent = headers.get(b"user-agent", b"").decode("latin-1").split(" ")[0]
        REQUEST.set(RequestId(host, port, agent or None, named))

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (_HEADER, named.encode("ascii", "replace"))]
                path = "/".join(map(one_word, scope["path"].split("/")))
                _LOG.debug("Answered: method=%s path=%s status=%d", scope["method"], path, message["status"])
            await send(message)

        await self._app(scope, receive, sent)
