"""From an object store's address and options to obstore's store."""

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

from obstore.store import ObjectStore, from_url

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.storage.aws_profiles import read_profile
from tidelog.log.storage.nodes import CONNECT_TIMEOUT_MS, NODE_RETRIES, READ_TIMEOUT_MS, Nodes
from tidelog.log.storage.objects_errors import RAISED, describe
from tidelog.log.storage.options import (
    NO_OPTIONS,
    Connection,
    Secrets,
    StoreOptions,
    connection,
    endpoint_keys,
    endpoints,
)

# How obstore repeats a request: one that fails at once for some 10 s, one that gets no answer in its time once. The
# store's caller may go on after that, by time; so time bounds all retries together, and not a product of counts.
RETRIES = 10
RETRY_TIMEOUT_MS = 40_000
REQUEST_TIMEOUT_MS = 30_000  # obstore's own default
BACKOFF_MS = 100
MOST_BACKOFF_MS = 3_000
_BACKOFF_GROWS = 3


def retries(told: Mapping[str, int]) -> dict[str, Any]:
    """obstore's `RetryConfig`, whose pauses lie by chance between the first one and thrice the one before."""
    return {
        "max_retries": told.get("max_retries", RETRIES),
        "retry_timeout": timedelta(milliseconds=told.get("retry_timeout", RETRY_TIMEOUT_MS)),
        "backoff": {
            "init_backoff": timedelta(milliseconds=(first_ms := told.get("init_backoff", BACKOFF_MS))),
            "max_backoff": timedelta(milliseconds=max(first_ms, told.get("max_backoff", MOST_BACKOFF_MS))),
            "base": _BACKOFF_GROWS,
        },
    }


@dataclass(frozen=True, slots=True)
class Connected:
    """obstore's stores of the server's nodes; the secrets that its messages must not hold; the server, for messages.

    `by_address()`: a store for each node, and for each address that a node's name has, none where there is one in all;
    see `_by_address`. `engine_options`: of each node.
    """

    nodes: Nodes
    secrets: Secrets
    place: str
    by_address: Callable[[], list[ObjectStore]] = list
    engine_options: tuple[StoreOptions, ...] = (NO_OPTIONS,)


def connect(uri: str, options: Mapping[str, str], environment: Mapping[str, str]) -> Connected:
    """The store at an address (`parse_address`). Nothing is asked of it yet.

    Raises `InvalidConfigError`, whose message holds no secret either.
    """
    told = connection(uri.partition(":")[0].lower(), options, environment, lambda name: read_profile(name, environment))
    ways = _nodes_of(told)
    within_s = told.retry.get("retry_timeout", RETRY_TIMEOUT_MS) / 1000
    nodes = Nodes([_open(uri, way) for way in ways], within_s)
    return Connected(
        nodes, told.secrets, told.place, partial(_by_address, uri, ways), tuple(_for_engines(way) for way in ways)
    )


def bucket_of(uri: str) -> tuple[str, str]:
    """The address of the bucket or container alone, and what paths in it begin with.

    >>> bucket_of("s3://bucket/a/lake"), bucket_of("gs://bucket")
    (('s3://bucket', 'a/lake/'), ('gs://bucket', ''))
    """
    parts = urlsplit(uri)
    prefix = parts.path.strip("/")
    return f"{parts.scheme}://{parts.netloc}", f"{prefix}/" if prefix else ""


def _nodes_of(told: Connection) -> list[Connection]:
    """A connection to each address that the endpoint lists. One node of several is given up sooner than a server."""
    keys = endpoint_keys(told.config)
    addresses = endpoints(told.config[keys[0]]) if keys else []
    if len(addresses) <= 1:
        return [told]
    patience = {"connect_timeout": f"{CONNECT_TIMEOUT_MS}ms", "read_timeout": f"{READ_TIMEOUT_MS}ms"}
    client, retry = {**patience, **told.client}, {**told.retry, "max_retries": NODE_RETRIES}
    return [_at(replace(told, client=client, retry=retry), address) for address in addresses]


def _at(told: Connection, endpoint: str) -> Connection:
    return replace(told, config={**told.config, **dict.fromkeys(endpoint_keys(told.config), endpoint)})


def _open(uri: str, told: Connection) -> ObjectStore:
    keys = told.keys
    try:
        return from_url(
            uri,
            config=cast(Any, dict(told.config)),
            client_options=cast(Any, dict(told.client)),
            retry_config=cast(Any, retries(told.retry)),
            credential_provider=cast(Any, None if keys is None else lambda: {**keys, "expires_at": None}),
        )
    except RAISED as error:
        raise InvalidConfigError(
            f"The store {uri} can't be opened as configured: {describe(error, told.secrets)}. Correct the store's"
            " options, or the address."
        ) from None


def _for_engines(told: Connection) -> StoreOptions:
    """The same store as object_store's options; its keys of an AWS profile have these names, too."""
    keys = {f"aws_{name}": value for name, value in (told.keys or {}).items() if value is not None}
    return StoreOptions({**told.config, **told.client, **keys})


def _by_address(uri: str, nodes: Sequence[Connection]) -> list[ObjectStore]:
    """The store by each node, and by each address of a node's name, which takes the name's place; none where that is
    one. Requests are not repeated.

    A node is taken by its name where addresses would reach another thing: a certificate is for the name (TLS), a proxy
    resolves it, a bucket is part of it. There each of a client's connections takes an address of the name's by chance,
    one for each request that is under way.
    """
    ways = [_at(node, endpoint) for node in nodes for endpoint in _endpoints_of(node)]
    return [_open(uri, replace(way, retry={"max_retries": 0})) for way in ways] if len(ways) > 1 else []


def _endpoints_of(node: Connection) -> list[str]:
    keys = endpoint_keys(node.config)
    if not keys:
        return []
    endpoint = node.config[keys[0]]
    if "proxy_url" in node.client or node.config.get("virtual_hosted_style_request") == "true":
        return [endpoint]
    return _addressed(endpoint) or [endpoint]


def _addressed(endpoint: str) -> list[str]:
    parts = urlsplit(endpoint)
    if parts.scheme.lower() != "http" or not parts.hostname:
        return []
    port = parts.port or 80
    try:
        addresses = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    hosts = dict.fromkeys(f"[{at[0]}]" if family == socket.AF_INET6 else at[0] for family, _, _, _, at in addresses)
    return [parts._replace(netloc=f"{host}:{port}").geturl() for host in hosts] if len(hosts) > 1 else []
