"""How a client reaches a registry: over HTTP, or in its own process over a lake."""

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

import orjson

from tidelog.log.base.errors import OutcomeUnknownError, TidelogError
from tidelog.log.lake import Lake
from tidelog.registry.api.calls import ApiCall, SchemaText
from tidelog.registry.api.routing import routed
from tidelog.registry.base.errors import RegistryError
from tidelog.registry.log.registry_log import SCHEMAS_TOPIC, RegistryLog
from tidelog.schema_registry.model import SchemaRegistryError

Query = Mapping[str, str]


class Transport(Protocol):
    """Sends a request of Confluent's API."""

    def send(self, method: str, path: str, query: Query, body: Any = None) -> Any:
        """The answer's JSON. Raises `SchemaRegistryError`."""

    def close(self) -> None:
        """Give back what it holds."""


class LakeTransport:
    """A registry in this process: the same API over a lake's topic, without a server."""

    def __init__(self, lake: Lake, topic: str = SCHEMAS_TOPIC, *, owned: bool = False) -> None:
        self._lake = lake
        self._owned = owned
        self._log = RegistryLog(lake, topic)

    def send(self, method: str, path: str, query: Query, body: Any = None) -> Any:
        """Answer a request. Raises `SchemaRegistryError` with the codes that a server gives."""
        try:
            route = routed(method, path)
            listed = {key: [value] for key, value in query.items()}
            data = b"" if body is None else orjson.dumps(body)
            answer = route.handler(ApiCall(self._log, route.variables, listed, data, route.context))
        except RegistryError as error:
            raise SchemaRegistryError(error.status, error.code, str(error)) from error
        except OutcomeUnknownError as error:
            raise SchemaRegistryError(500, 50002, str(error)) from error
        except TidelogError as error:
            raise SchemaRegistryError(500, 50001, str(error)) from error
        return answer.text if isinstance(answer, SchemaText) else answer

    def close(self) -> None:
        """Close the lake, where it was opened for this."""
        if self._owned:
            self._lake.close()


class HttpTransport:
    """A registry at one of several URLs: the next one is asked where one does not answer."""

    def __init__(self, urls: list[str], timeout_s: float, credentials: tuple[str, str] | None) -> None:
        import httpx  # not needed with a lake

        self._urls = urls
        self._errors = httpx.TransportError
        self._client = httpx.Client(
            timeout=timeout_s,
            auth=credentials,
            headers={"accept": "application/vnd.schemaregistry.v1+json, application/json"},
        )

    def send(self, method: str, path: str, query: Query, body: Any = None) -> Any:
        """Send a request. Raises `SchemaRegistryError`; with code -1 where no URL answers."""
        content = None if body is None else orjson.dumps(body)
        headers = {} if body is None else {"content-type": "application/vnd.schemaregistry.v1+json"}
        failure: Exception | None = None
        for url in self._urls:
            address = f"{url.rstrip('/')}{path}{'?' if query else ''}{urlencode(query)}"
            try:
                answer = self._client.request(method, address, content=content, headers=headers)
            except self._errors as error:
                failure = error
                continue
            return _found(answer)
        raise SchemaRegistryError(-1, -1, f"No registry answers at {', '.join(self._urls)}: {failure}.") from failure

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _found(answer: Any) -> Any:
    try:
        found = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        found = None
    if answer.status_code < 300:
        return found
    if not isinstance(found, dict):
        raise SchemaRegistryError(answer.status_code, -1, f"Unknown Schema Registry Error: {answer.text[:200]}")
    code = found.get("error_code", answer.status_code)
    raise SchemaRegistryError(answer.status_code, code, str(found.get("message", "")))
