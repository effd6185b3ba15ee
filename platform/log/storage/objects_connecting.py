"""From an object store's address and options to obstore's store."""

import re
from collections.abc import Mapping
from typing import Any, cast

from obstore.store import ObjectStore, from_url

from tidelog.log.errors import InvalidConfigError, InvalidUriError
from tidelog.log.storage.aws_profiles import read_profile
from tidelog.log.storage.objects_errors import RAISED, describe
from tidelog.log.storage.options import connection


def connect(
    uri: str, options: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[ObjectStore, tuple[str, ...]]:
    """The store at an address, and the secrets that its messages must not hold. Nothing is asked of it yet.

    Raises `InvalidUriError` and `InvalidConfigError`, whose messages hold no secret either.
    """
    if any(c in uri for c in "%?#") or re.search(r"//[^/@]*:[^/@]*@", uri):
        raise InvalidUriError(
            f"The address {re.sub(r'[?#].*|//[^/]*@', '...', uri)!r} holds a password, or a '%', '?' or '#', which "
            "Spark and deltalake read differently. Write the plain address, and credentials as options."
        )
    told = connection(uri.partition(":")[0].lower(), options, environment, lambda name: read_profile(name, environment))
    keys = told.keys
    try:
        store = from_url(
            uri,
            config=cast(Any, dict(told.config)),
            client_options=cast(Any, dict(told.client)),
            credential_provider=cast(Any, None if keys is None else lambda: {**keys, "expires_at": None}),
        )
    except RAISED as error:
        raise InvalidConfigError(
            f"The store {uri} can't be opened as configured: {describe(error, told.secrets)}. Correct the store's"
            " options, or the address."
        ) from None
    return store, told.secrets
