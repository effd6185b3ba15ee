"""ApiVersions: what a client learns first, the APIs and versions that the broker offers (KIP-35, KIP-511)."""

from collections.abc import Iterable

from tidelog.broker.base.calls import Call, Encoded, Handler, Reply
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.codec import Answer, encode
from tidelog.broker.wire.errors import UnsupportedVersionError

# Clients newer than the broker are answered in this version: every client reads it.
_OLDEST = 0


def api_versions(offered: Iterable[ApiKey]) -> Handler:
    """Answers which of the APIs are `offered`, in which versions.

    A version of this request that is not offered gets error 35 and the same list.
    """
    listed = sorted(offered)

    def answer(error: int) -> Answer:
        return {
            "error_code": error,
            "api_keys": [
                {"api_key": key, "min_version": OFFERED[key].shown, "max_version": OFFERED[key].last} for key in listed
            ],
        }

    async def handle(call: Call) -> Reply:
        if call.version not in OFFERED[ApiKey.API_VERSIONS]:
            return Encoded([encode(ApiKey.API_VERSIONS, _OLDEST, answer(UnsupportedVersionError.kafka_code))])
        return answer(0)

    return handle
