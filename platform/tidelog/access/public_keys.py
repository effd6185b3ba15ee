"""The keys that an issuer of tokens publishes (RFC 7517): fetched when they are needed, and kept.

They are fetched again when they are old, and when a token names a key that is not among them, but at most
once in some seconds: made-up tokens don't flood their issuer. When they can't be had, those of before go on being used.
"""

import json
import logging
import threading
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import SplitResult, unquote, urlsplit

from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import InvalidConfigError

logger = logging.getLogger(__name__)

SETTING: Final = "sasl.oauthbearer.jwks.endpoint.url"
# The time between two looks that tokens with unknown keys cause, and after one that failed.
LEAST_S: Final = 10.0
RETRY_S: Final = 1.0
_WITHIN_S: Final = 10.0
_MOST_BYTES: Final = 1024 * 1024
# Keys that both sides would know are no issuer's.
_KINDS: Final = frozenset({"RSA", "EC", "OKP"})


class PublicKeys:
    """The keys at an address, https, http or file. For any thread; `candidates` may wait for the address.

    Raises `InvalidConfigError` for an address of another kind.
    """

    def __init__(
        self, address: str, refresh_s: float, clock: Clock, fetch: Callable[[str, Clock], bytes] | None = None
    ) -> None:
        self._address = address
        self._shown = _checked(address)
        self._refresh_s = refresh_s
        self._clock = clock
        self._fetch = fetch or fetched
        self._keys: Sequence[Key] = ()
        self._fetched_s: float | None = None
        self._next_s = clock.elapsed_s()
        self._failing = False
        self._one_at_a_time = threading.Lock()

    def candidates(self, kid: str | None, algorithm: str) -> Sequence[Key]:
        """The keys that a token of this key id and algorithm can be signed with; [] when there is none."""
        if self._is_old():
            self._look()
        keys = self._matching(kid, algorithm)
        if not keys and self._look():
            keys = self._matching(kid, algorithm)
        return keys

    def _matching(self, kid: str | None, algorithm: str) -> Sequence[Key]:
        return [
            key
            for key in self._keys
            if kid in (None, key.get("kid")) and key.get("alg") in (None, algorithm) and key.get("use") in (None, "sig")
        ]

    def _is_old(self) -> bool:
        return self._fetched_s is None or self._clock.elapsed_s() - self._fetched_s >= self._refresh_s

    def _look(self) -> bool:
        """Fetch the keys, unless that was done a moment ago; whether they were."""
        asked_s = self._clock.elapsed_s()
        if asked_s < self._next_s:
            return False
        with self._one_at_a_time:
            if self._fetched_s is not None and self._fetched_s >= asked_s:
                return True  # another thread has done it meanwhile
            if self._clock.elapsed_s() < self._next_s:
                return False
            try:
                self._keys = _parsed(self._fetch(self._address, self._clock))
            except (OSError, ValueError, HTTPException) as e:
                self._next_s = self._clock.elapsed_s() + RETRY_S
                if not self._failing:
                    self._failing = True
                    logger.warning(
                        "The keys of %s can't be had (%s): %d keys of before are used on, and it is asked again.",
                        self._shown,
                        e,
                        len(self._keys),
                    )
                return False
            self._fetched_s = self._clock.elapsed_s()
            self._next_s = self._fetched_s + LEAST_S
            if self._failing:
                self._failing = False
                logger.info("The keys of %s are there again: %d.", self._shown, len(self._keys))
            return True


def _checked(address: str) -> str:
    """The address as logs show it."""
    parts = urlsplit(address)
    if parts.scheme not in ("https", "http", "file") or not (parts.path if parts.scheme == "file" else parts.hostname):
        raise InvalidConfigError(
            f"{SETTING} is the address of an issuer's keys: https://issuer/keys.json, or file:///path/keys.json."
        )
    if parts.username is not None:
        raise InvalidConfigError(f"{SETTING} has a user in it: an issuer's keys are public, leave it out.")
    return SplitResult(parts.scheme, parts.netloc, parts.path, "", "").geturl()


def fetched(address: str, clock: Clock) -> bytes:
    """What is at the address. Raises `OSError`, `ValueError`, `HTTPException`."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        with Path(unquote(parts.path)).open("rb") as file:
            return _bounded(file.read(_MOST_BYTES + 1))
    opener = urllib.request.OpenerDirector()  # without handlers for files and FTP, where a redirection could lead
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    until_s = clock.elapsed_s() + _WITHIN_S
    body = b""
    with opener.open(address, timeout=_WITHIN_S / 2) as answer:
        while piece := answer.read1(64 * 1024):
            body = _bounded(body + piece)
            if clock.elapsed_s() > until_s:
                raise TimeoutError(f"it did not come within {_WITHIN_S:g} s")
    return body


def _bounded(body: bytes) -> bytes:
    if len(body) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    return body


def _parsed(text: bytes) -> Sequence[Key]:
    """The keys that can check signatures; others, and those that can't be read, are passed over."""
    try:
        found = json.loads(text)["keys"]
        keys = [_key(one) for one in found]
    except (KeyError, TypeError, RecursionError, ValueError) as e:
        raise ValueError("it is no set of keys (RFC 7517)") from e
    usable = [key for key in keys if key is not None]
    if not usable:
        raise ValueError("it has no key that checks signatures")
    return usable


def _key(jwk: Any) -> Key | None:
    if not isinstance(jwk, dict) or jwk.get("kty") not in _KINDS:
        return None
    try:
        key = JWKRegistry.import_key(jwk)
    except Exception:  # a kind or a form that the library does not know: the others count
        logger.debug("A key of kind %s can't be read.", jwk["kty"], exc_info=True)
        return None
    return cast("RSAKey | ECKey | OKPKey", key)
