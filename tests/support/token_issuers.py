"""An issuer of tokens: its key, the set of keys that it publishes, and tokens with any header and claims."""

import json
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey

from tidelog.log.base.clock import Clock

ISSUER, AUDIENCE = "https://issuer.test", "tidelog"


class Issuer:
    """An issuer with a key `kid`. `fetch`: as `PublicKeys` takes it; `fetched`: how often it was called."""

    def __init__(self, kid: str = "k1", kind: str = "RSA") -> None:
        self.keys = [new_key(kind, kid)]
        self.fetched = 0
        self.failure: Exception | None = None

    def fetch(self, address: str, clock: Clock) -> bytes:
        self.fetched += 1
        if self.failure is not None:
            raise self.failure
        return self.published()

    def published(self) -> bytes:
        return json.dumps(KeySet(list(self.keys)).as_dict(private=False)).encode()

    def token(self, now_s: float, *, header: dict[str, Any] | None = None, key: Any = None, **claims: Any) -> str:
        """A token that is right, but for what is given; None leaves a claim out."""
        key = key or self.keys[0]
        usual = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "exp": now_s + 300, "iat": now_s, "scope": "a b"}
        said = {name: value for name, value in (usual | claims).items() if value is not None}
        top = {"alg": ALGORITHM_OF[type(key)], "kid": key.kid, **(header or {})}
        algorithms = [top["alg"]]
        return jwt.encode({n: v for n, v in top.items() if v is not None}, said, key, algorithms=algorithms)


ALGORITHM_OF = {RSAKey: "RS256", ECKey: "ES256", OKPKey: "Ed25519", OctKey: "HS256"}


def new_key(kind: str, kid: str) -> Any:
    if kind == "RSA":
        return RSAKey.generate_key(2048, {"kid": kid})
    if kind == "EC":
        return ECKey.generate_key("P-256", {"kid": kid})
    return OKPKey.generate_key("Ed25519", {"kid": kid})
