"""Which requests may come from a page in a browser at all, before anything is known of their sender.

A page of another site may have a browser send requests with the user's password. So what changes something needs a
token that only the console's own page can read. By which names the console is called, its server looks
(`tidelog.server.hosts`).
Source: OWASP's cheat sheet on cross-site request forgery; Fetch Metadata (W3C).
"""

import hmac
from collections.abc import Mapping
from typing import Final

from tidelog.console.base.errors import ConsoleError
from tidelog.server.requests import authority_of

CSRF_HEADER: Final = "x-tidelog-csrf"
HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def require_own_page(method: str, headers: Mapping[str, str]) -> None:
    """Refuse a request that a page of another site has a browser send. Raises `ConsoleError` 403."""
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise ConsoleError(403, "A page of another site can't ask the console.")
    origin = headers.get("origin")
    if origin is not None and method != "GET" and authority_of(origin) != headers.get("host", "").lower():
        raise ConsoleError(403, "A page of another site can't change the lake.")


def require_token(sent: str | None, token: str) -> None:
    """Refuse a change without the token of /api/session. Raises `ConsoleError` 403."""
    if not hmac.compare_digest((sent or "").encode("utf-8", "replace"), token.encode()):
        raise ConsoleError(403, "The request needs the header X-Tidelog-CSRF with the token of GET /api/session.")
