"""How a client sends requests to a registry: over HTTP, to one of several addresses."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import orjson

from tidelog.clients.schema_registry.model import SchemaRegistryError
from tidelog.clients.schema_registry.settings import HttpSettings
from tidelog.clients.schema_registry.tokens import Headers, OAuthTokenError, bearer_headers
from tidelog.log.base.backoff import BackoffRule
from tidelog.log.base.clock import Clock, Ids, SystemClock, SystemIds

if TYPE_CHECKING:
    import httpx

Query = Mapping[str, str | Sequence[str]]

# Statuses after which the same request may succeed (RFC 9110, 15; confluent-kafka's list).
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
_V1: Final = "application/vnd.schemaregistry.v1+json"
_ACCEPTED: Final = f"{_V1}, application/vnd.schemaregistry+json, application/json"


class HttpTransport:
    """A registry at one of several URLs: the next one is asked where one goes on failing after all retries."""

    def __init__(self, settings: HttpSettings, clock: Clock | None = None, ids: Ids | None = None) -> None:
        import httpx  # not needed with a lake

        self._settings = settings
        self._clock, self._ids = clock or SystemClock(), ids or SystemIds()
        self._errors = httpx.TransportError
        self._client = httpx.Client(
            timeout=settings.timeout_s,
            auth=settings.user,
            proxy=settings.proxy,
            verify=_trust(settings),
            headers={"accept": _ACCEPTED},
        )
        self._bearer: Headers | None = None
        try:
            if settings.bearer:
                self._bearer = bearer_headers(settings.bearer, self._token, self._clock)
        except BaseException:
            self._client.close()
            raise

    def send(self, method: str, path: str, query: Query, body: Any = None) -> Any:
        """Send a request. Raises `SchemaRegistryError`, with code -1 where no URL answers; `OAuthTokenError`."""
        content = None if body is None else orjson.dumps(body)
        headers = {} if body is None else {"content-type": _V1, "confluent-accept-unknown-properties": "true"}
        if self._bearer is not None:
            headers |= self._bearer()
        rest = f"{path}{'?' if query else ''}{urlencode(query, doseq=True)}"
        sent: dict[str, Any] = {"content": content, "headers": headers}
        answer, failure = None, None
        for url in self._settings.urls:
            answer, failure = self._retried(partial(self._client.request, method, url + rest, **sent))
            if answer is not None and answer.status_code not in _PASSING:
                break
        if answer is None:
            urls = ", ".join(self._settings.urls)
            why = str(failure).removesuffix(".")
            raise SchemaRegistryError(
                -1, -1, f"No registry answers at {urls}: {why}. Is it running, and is the address right?"
            ) from failure
        return _found(answer)

    def _retried(self, request: "Callable[[], httpx.Response]") -> "tuple[httpx.Response | None, Exception | None]":
        """A request's answer after retries, or why there is none."""
        for tried in range(self._settings.retries + 1):
            answer, failure = None, None
            try:
                answer = request()
            except self._errors as error:
                failure = error
            if (answer is not None and answer.status_code not in _PASSING) or tried == self._settings.retries:
                break
            self._wait(tried)
        return answer, failure

    def _wait(self, tried: int) -> None:
        """Wait before another try: a random part of a time that doubles ("full jitter")."""
        settings = self._settings
        rule = BackoffRule(settings.wait_ms / 1000, settings.most_wait_ms / 1000, least=0.0, spread=1.0)
        self._clock.sleep(rule.pause_s(tried + 1, self._ids.fraction()))

    def _token(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        form: Mapping[str, str] | None = None,
        client: tuple[str, str] | None = None,
    ) -> Mapping[str, Any]:
        if form is None:
            answer, failure = self._retried(lambda: self._client.get(url, headers=headers, auth=None))
        else:
            auth: Any = client
            answer, failure = self._retried(lambda: self._client.post(url, data=form, auth=auth))
        if answer is None:
            raise OAuthTokenError(f"The issuer of tokens at {url} does not answer: {failure}.") from failure
        try:
            fields = orjson.loads(answer.content)
        except orjson.JSONDecodeError:
            fields = None
        if answer.status_code != 200 or not isinstance(fields, dict):
            text = answer.text[:200]
            raise OAuthTokenError(
                f"The issuer of tokens at {url} gave none: HTTP {answer.status_code}, {text}", answer.status_code, text
            )
        return fields

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _trust(settings: HttpSettings) -> ssl.SSLContext:
    """Which certificates are taken, and the client's own. Raises `ValueError`."""
    import httpx

    try:
        if settings.ca is False:
            context = httpx.create_ssl_context(verify=False)
        elif isinstance(settings.ca, str):
            folder = Path(settings.ca).is_dir()
            context = ssl.create_default_context(
                capath=settings.ca if folder else None, cafile=None if folder else settings.ca
            )
        else:
            context = httpx.create_ssl_context()
        if settings.certificate is not None:
            context.load_cert_chain(settings.certificate, settings.key, settings.key_password)
    except (OSError, ValueError) as error:  # what ssl raises is one of them
        raise ValueError(
            f"The client can't speak TLS by ssl.ca.location, ssl.certificate.location and ssl.key.location: {error}."
        ) from error
    return context


def _found(answer: Any) -> Any:
    try:
        body = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        body = None
    if answer.status_code < 300:
        return body
    if not isinstance(body, dict):
        raise SchemaRegistryError(answer.status_code, -1, f"Unknown Schema Registry Error: {answer.text[:200]}")
    code = body.get("error_code", answer.status_code)
    raise SchemaRegistryError(answer.status_code, code, str(body.get("message", "")))
