"""Tokens that a client of a registry logs in by (`bearer.auth.*`)."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import urlsplit, urlunsplit

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import TidelogError

# Which part of its time a token is used for before another one is asked for.
_USED_FOR: Final = 0.8
# How long a token lasts whose issuer does not say it, in seconds.
_LASTS_S: Final = 300.0
_AZURE: Final = "http://169.254.169.254/metadata/identity/oauth2/token"
_CLUSTER: Final = "bearer.auth.logical.cluster"
_POOL: Final = "bearer.auth.identity.pool.id"


class OAuthTokenError(TidelogError):
    """A token that can't be had. `status_code` and `response_text`: what the issuer answered, where it did."""

    def __init__(self, message: str, status_code: int | None = None, response_text: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status_code = status_code
        self.response_text = response_text


class SendsForm(Protocol):
    """Sends a request for a token: to a URL, as GET with headers, or as POST with a form and a client's credentials."""

    def __call__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        client: tuple[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """The answer's JSON. Raises `OAuthTokenError`."""


Headers = Callable[[], Mapping[str, str]]


def bearer_headers(conf: Mapping[str, Any], send: SendsForm, clock: Clock) -> Headers:
    """What gives the headers of a request, by the keys `bearer.auth.*`. Raises `ValueError` and `TypeError`.

    It raises `OAuthTokenError` where a token can't be had.
    """
    source = conf["bearer.auth.credentials.source"]
    if source == "CUSTOM":
        function, given = (_needed(conf, f"bearer.auth.custom.provider.{one}") for one in ("function", "config"))
        if not callable(function):
            raise TypeError("bearer.auth.custom.provider.function must be callable: it gives bearer.auth.token.")
        if not isinstance(given, Mapping):
            raise TypeError("bearer.auth.custom.provider.config must be a dict: the function gets it.")
        return lambda: _headers(function(given))
    named = {key: value for key in (_CLUSTER, _POOL) if (value := _listed(conf, key)) is not None}
    if source == "STATIC_TOKEN":
        token = _text(conf, "bearer.auth.token")
        return lambda: _headers({"bearer.auth.token": token, **named})
    if source == "OAUTHBEARER":
        url, client = _text(conf, "bearer.auth.issuer.endpoint.url"), _text(conf, "bearer.auth.client.id")
        secret, scope = _text(conf, "bearer.auth.client.secret"), conf.get("bearer.auth.scope")
        form = {"grant_type": "client_credentials", **({"scope": str(scope)} if scope else {})}
        kept = _KeptToken(lambda: send(url, form=form, client=(client, secret)), clock)
    elif source == "OAUTHBEARER_AZURE_IMDS":
        where = _azure(conf)
        kept = _KeptToken(lambda: send(where, headers={"metadata": "true"}), clock)
    else:
        raise ValueError(
            f"bearer.auth.credentials.source must be OAUTHBEARER, OAUTHBEARER_AZURE_IMDS, STATIC_TOKEN or CUSTOM, not"
            f" {source!r}."
        )
    return lambda: _headers({"bearer.auth.token": kept.token(), **named})


@dataclass
class _KeptToken:
    """A token, asked for again when most of its time is over."""

    ask: Callable[[], Mapping[str, Any]]
    clock: Clock
    _token: str = field(default="", repr=False)
    _until_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def token(self) -> str:
        with self._lock:
            now_s = self.clock.elapsed_s()
            if not self._token or now_s >= self._until_s:
                answer = self.ask()
                token = answer.get("access_token")
                if not isinstance(token, str) or not token:
                    raise OAuthTokenError("The issuer's answer has no access_token.")
                try:
                    lasts_s = float(answer.get("expires_in") or _LASTS_S)
                except (TypeError, ValueError):
                    lasts_s = _LASTS_S
                self._token, self._until_s = token, now_s + lasts_s * _USED_FOR
            return self._token


def _headers(fields: Mapping[str, Any]) -> dict[str, str]:
    token = fields.get("bearer.auth.token")
    if not isinstance(token, str) or not token or not token.isascii() or any(c.isspace() for c in token):
        raise OAuthTokenError("bearer.auth.token holds no token: it must be text without spaces.")
    headers = {"authorization": f"Bearer {token}"}
    if fields.get(_CLUSTER):
        headers["target-sr-cluster"] = str(fields[_CLUSTER])
    if fields.get(_POOL):
        headers["confluent-identity-pool-id"] = str(fields[_POOL])
    return headers


def _azure(conf: Mapping[str, Any]) -> str:
    url, query = conf.get("bearer.auth.issuer.endpoint.url"), conf.get("bearer.auth.issuer.endpoint.query")
    if url is None and query is None:
        raise ValueError("OAUTHBEARER_AZURE_IMDS needs bearer.auth.issuer.endpoint.query or its url.")
    parts = urlsplit(str(url or _AZURE))
    return urlunsplit(parts._replace(query=str(query), fragment="")) if query else str(url)


def _listed(conf: Mapping[str, Any], key: str) -> str | None:
    """A text, or texts of a list with commas between."""
    value = conf.get(key)
    many = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(one, str) for one in many):
        raise TypeError(f"{key} must be a str, or a list of them.")
    return ",".join(many) or None


def _needed(conf: Mapping[str, Any], key: str) -> Any:
    if conf.get(key) is None:
        raise ValueError(f"{conf['bearer.auth.credentials.source']} needs {key}.")
    return conf[key]


def _text(conf: Mapping[str, Any], key: str) -> str:
    value = _needed(conf, key)
    if not isinstance(value, str):
        raise TypeError(f"{key} must be a str, not {type(value).__name__}.")
    return value
