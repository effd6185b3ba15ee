"""ApiVersions: what a client learns first, the APIs and versions that the broker offers (KIP-35, KIP-511)."""

import re
from collections.abc import Iterable
from typing import Any, Final

from tidelog.broker.base.calls import Call, Encoded, Handler, Reply
from tidelog.broker.base.client_software import ClientSoftware
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.errors import INVALID_REQUEST, UnsupportedVersionError
from tidelog.broker.wire.messages import Answer, encode

# What all brokers have: (oldest level, newest level). Groups may be of the types consumer (KIP-848) and streams
# (KIP-1071). Transactions are
# those of KIP-890's second generation.
_FEATURES: Final = {"group.version": (0, 1), "streams.version": (0, 1), "transaction.version": (0, 2)}
# From this version on clients know features whose oldest level is 0.
_LEVEL_0_SINCE: Final = 4
# How a client's software may be named, and numbered, which it says from version 3 on (KIP-511).
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_SOFTWARE_SINCE: Final = 3
# Clients newer than the broker are answered in this version: every client reads it.
_OLDEST = 0


def api_versions(offered: Iterable[ApiKey], software: ClientSoftware) -> Handler:
    """Answers which of the APIs are `offered`, in which versions; `software` remembers what the client runs.

    A version of this request that is not offered gets UNSUPPORTED_VERSION and the same list; software of no valid name
    gets INVALID_REQUEST and none. Each answer is encoded once: brokers ask each other over and over whether they
    live, and clients with each connection. Source: `ApiVersionsRequest.isValid`.
    """
    listed = sorted(offered)
    encoded: dict[int, Encoded] = {}

    def answer(error: int, version: int = _OLDEST) -> Answer:
        return {
            "error_code": error,
            "api_keys": [
                {"api_key": key, "min_version": OFFERED[key].shown, "max_version": OFFERED[key].last} for key in listed
            ],
            "supported_features": [
                {"name": name, "min_version": oldest, "max_version": newest}
                for name, (oldest, newest) in _FEATURES.items()
                if oldest or version >= _LEVEL_0_SINCE
            ],
            "finalized_features_epoch": 0,
            "finalized_features": [
                {"name": name, "max_version_level": newest, "min_version_level": newest}
                for name, (_, newest) in _FEATURES.items()
            ],
        }

    async def handle(call: Call) -> Reply:
        if call.version not in OFFERED[ApiKey.API_VERSIONS]:
            return Encoded([encode(ApiKey.API_VERSIONS, _OLDEST, answer(UnsupportedVersionError.kafka_code))])
        if not _is_valid(call.version, call.body):
            return {"error_code": INVALID_REQUEST, "api_keys": []}
        if call.version >= _SOFTWARE_SINCE:
            software.heard(call.peer, call.body.client_software_name, call.body.client_software_version)
        if call.version not in encoded:
            encoded[call.version] = Encoded(
                [encode(ApiKey.API_VERSIONS, call.version, answer(0, call.version))], {0: 1}
            )
        return encoded[call.version]

    return handle


def _is_valid(version: int, body: Any) -> bool:
    if version < _SOFTWARE_SINCE:
        return True
    told = (body.client_software_name, body.client_software_version)
    return all(_SOFTWARE.fullmatch(one) for one in told)
