"""Which tokens are accepted from principals that log in by OAuth."""

from dataclasses import dataclass

from tidelog.log.config.broker_keys import held


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """Whose tokens are accepted, and what they must say.

    `jwks`: the address of the public keys (RFC 7517): https, http, or file. `audiences`: a token is for one of them;
    () accepts any. `scopes`: a token has all of them.
    """

    jwks: str = held("sasl.oauthbearer.jwks.endpoint.url")
    audiences: tuple[str, ...] = held("sasl.oauthbearer.expected.audience")
    issuer: str | None = held("sasl.oauthbearer.expected.issuer")
    sub_claim: str = held("sasl.oauthbearer.sub.claim.name")
    scope_claim: str = held("sasl.oauthbearer.scope.claim.name")
    scopes: tuple[str, ...] = held("sasl.oauthbearer.expected.scope")
    clock_skew_s: int = held("sasl.oauthbearer.clock.skew.seconds")
    refresh_s: float = held("sasl.oauthbearer.jwks.endpoint.refresh.ms")
