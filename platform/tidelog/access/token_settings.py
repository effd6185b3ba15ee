"""Which tokens are accepted from principals that log in by OAuth."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """Whose tokens are accepted, and what they must say; Kafka's setting in the comment.

    `jwks`: the address of the public keys (RFC 7517): https, http, or file. `audiences`: a token is for one of them;
    () accepts any. `scopes`: a token has all of them.
    """

    jwks: str  # sasl.oauthbearer.jwks.endpoint.url
    audiences: tuple[str, ...] = ()  # sasl.oauthbearer.expected.audience
    issuer: str | None = None  # sasl.oauthbearer.expected.issuer
    sub_claim: str = "sub"  # sasl.oauthbearer.sub.claim.name: the principal's name
    scope_claim: str = "scope"  # sasl.oauthbearer.scope.claim.name
    scopes: tuple[str, ...] = ()  # sasl.oauthbearer.expected.scope, which Kafka has not
    clock_skew_s: int = 30  # sasl.oauthbearer.clock.skew.seconds
    refresh_s: float = 3600.0  # sasl.oauthbearer.jwks.endpoint.refresh.ms
