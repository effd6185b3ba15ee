"""Which requests may come from a page in a browser at all, before anything is known of their sender.

A page of another site may have a browser send requests with the user's password. So what changes something needs a
token that only the console's own page can read, and every request must name the console as browsers do: a name that
another name server answers for (DNS rebinding) is none of its names.
Source: OWASP's cheat sheet on cross-site request forgery; Fetch Metadata (W3C).
"""

import hmac
import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from tidelog.console.base.errors import ConsoleError

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


def require_own_host(host: str | None, names: frozenset[str]) -> None:
    """Refuse a request whose header Host is none of the console's. Raises `ConsoleError` 403.

    An address of digits needs no name server, so it can't be rebound. `names`: in small letters, without ports.
    """
    named = _host_name(host or "")
    if named is None or not (named in names or named == "localhost" or _is_address(named)):
        raise ConsoleError(
            403, "The console isn't known by the host that the request names. Start it with --host-name to have it be."
        )


def require_own_page(method: str, headers: Mapping[str, str]) -> None:
    """Refuse a request that a page of another site has a browser send. Raises `ConsoleError` 403."""
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise ConsoleError(403, "A page of another site can't ask the console.")
    origin = headers.get("origin")
    if origin is not None and method != "GET" and _authority(origin) != headers.get("host", "").lower():
        raise ConsoleError(403, "A page of another site can't change the lake.")


def require_token(sent: str | None, token: str) -> None:
    """Refuse a change without the token of /api/session. Raises `ConsoleError` 403."""
    if not hmac.compare_digest((sent or "").encode("utf-8", "replace"), token.encode()):
        raise ConsoleError(403, "The request needs the header X-Tidelog-CSRF with the token of GET /api/session.")


def _host_name(host: str) -> str | None:
    try:
        split = urlsplit(f"//{host}")
        valid = split.port is None or split.port > 0
    except ValueError:
        return None
    return split.hostname if valid and split.netloc == host and "@" not in host else None


def _authority(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
