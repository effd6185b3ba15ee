"""Tokens of principals that log in by OAuth: JSON Web Tokens (RFC 7519), signed by a key that their issuer publishes.

A token that is not signed, or signed with a secret that both sides know, is refused: all that check such a token could
make one. Keys that a token brings along, or points at, are not looked at. Source: KIP-768, RFC 8725.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any, Final

from joserfc import jws
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwt import JWTClaimsRegistry

from tidelog.access.broker_user import BROKER_USER
from tidelog.access.model import Identity
from tidelog.access.public_keys import PublicKeys
from tidelog.access.token_settings import TokenSettings
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import AuthenticationError

ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519", "Ed448"}
)
# A token with more is no token: certificates in its header take some kB, groups of a user in its claims some tens.
MOST_BYTES: Final = 128 * 1024
_MOST_HEADER_BYTES: Final = 16 * 1024


class _Signatures(jws.JWSRegistry):
    """The algorithms that are accepted, and headers with parameters of any name."""

    max_header_length = _MOST_HEADER_BYTES

    def get_alg(self, name: str) -> Any:
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError("the algorithm is not accepted")
        return self.algorithms[name]


class Tokens:
    """Checks tokens. For any thread; it may wait for the issuer's keys."""

    def __init__(self, settings: TokenSettings, keys: PublicKeys, clock: Clock) -> None:
        self._settings = settings
        self._keys = keys
        self._clock = clock
        self._signatures = _Signatures(strict_check_header=False)

    def identity(self, token: str) -> Identity:
        """Whose token it is, and until when. Raises `AuthenticationError`."""
        claims = self._claims(token)
        settings = self._settings
        name = claims.get(settings.sub_claim)
        if not isinstance(name, str) or not name.strip():
            raise AuthenticationError(f"the token has no claim {settings.sub_claim}, which names the principal")
        if name == BROKER_USER:
            raise AuthenticationError(f"the token is for {BROKER_USER}, which only brokers are")
        missing = set(settings.scopes) - set(_scopes(claims.get(settings.scope_claim)))
        if missing:
            raise AuthenticationError(f"the token lacks the scopes {sorted(missing)}")
        return Identity(f"User:{name}", float(claims["exp"]))

    def _claims(self, token: str) -> dict[str, Any]:
        """What the token says, if its signature and its times are right."""
        if len(token) > MOST_BYTES:
            raise AuthenticationError(f"the token has {len(token)} characters, and {MOST_BYTES} are accepted")
        try:
            payload = self._signed(token)
            claims = json.loads(payload)
            if not isinstance(claims, dict):
                raise AuthenticationError("the token's claims are no JSON object")
            self._registry().validate(claims)
        except AuthenticationError:
            raise
        except JoseError as e:
            raise AuthenticationError(f"the token is refused: {e.error}") from None
        except Exception as e:  # whatever a parser makes of bytes that anyone may send
            raise AuthenticationError(f"the token can't be read: {type(e).__name__}") from None
        return claims

    def _signed(self, token: str) -> bytes:
        """The token's payload, once one of the issuer's keys has signed it."""
        signed = jws.extract_compact(token.encode("ascii"), None, self._signatures)
        header = signed.headers()
        kid, algorithm = header.get("kid"), header["alg"]
        if "crit" in header:
            raise AuthenticationError("the token's header has 'crit', and no extension is known")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise AuthenticationError(f"the token is signed by {str(algorithm)[:20]!r}, which is not accepted")
        if kid is not None and not isinstance(kid, str):
            raise AuthenticationError("the token's key id is no string")
        for key in self._keys.candidates(kid, algorithm):
            try:
                if jws.validate_compact(signed, key, registry=self._signatures) and signed.payload is not None:
                    return signed.payload
            except JoseError:  # a key of another kind
                continue
        raise AuthenticationError("no key of the issuer has signed the token")

    def _registry(self) -> JWTClaimsRegistry:
        settings = self._settings
        options: dict[str, Any] = {"exp": {"essential": True}}
        if settings.audiences:
            options["aud"] = {"essential": True, "values": list(settings.audiences)}
        if settings.issuer is not None:
            options["iss"] = {"essential": True, "value": settings.issuer}
        return JWTClaimsRegistry(now=self._clock.now_ms() // 1000, leeway=settings.clock_skew_s, **options)


def _scopes(claim: Any) -> Collection[str]:
    """The scopes of a claim: a list, or names with spaces between (RFC 8693, 4.2)."""
    if isinstance(claim, str):
        return claim.split()
    if isinstance(claim, Sequence):
        return [one for one in claim if isinstance(one, str)]
    return ()
