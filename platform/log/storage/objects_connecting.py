"""From an object store's address and options to obstore's store."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from obstore.store import ObjectStore, from_url

from tidelog.log.errors import InvalidConfigError
from tidelog.log.storage.aws_profiles import read_profile
from tidelog.log.storage.objects_errors import RAISED, describe
from tidelog.log.storage.options import Secrets, connection

# How obstore repeats a request: one that fails at once for some 10 s, one that gets no answer in its time once. Who
# calls the store may go on after that, by time; so what all repeats together make is bounded by time, and not by a
# product of counts.
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
    """obstore's store; the secrets that its messages must not hold; the server, for messages."""

    store: ObjectStore
    secrets: Secrets
    place: str


def connect(uri: str, options: Mapping[str, str], environment: Mapping[str, str]) -> Connected:
    """The store at an address (`parse_address`). Nothing is asked of it yet.

    Raises `InvalidConfigError`, whose message holds no secret either.
    """
    told = connection(uri.partition(":")[0].lower(), options, environment, lambda name: read_profile(name, environment))
    keys = told.keys
    try:
        store = from_url(
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
    return Connected(store, told.secrets, told.place)
