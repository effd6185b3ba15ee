"""The configuration of a client: confluent-kafka's keys, and those of a lake."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

_BEARER: Final = (
    "bearer.auth.credentials.source",
    "bearer.auth.token",
    "bearer.auth.logical.cluster",
    "bearer.auth.identity.pool.id",
    "bearer.auth.client.id",
    "bearer.auth.client.secret",
    "bearer.auth.scope",
    "bearer.auth.issuer.endpoint.url",
    "bearer.auth.issuer.endpoint.query",
    "bearer.auth.custom.provider.function",
    "bearer.auth.custom.provider.config",
)
_HTTP: Final = frozenset(
    {
        "url",
        "timeout",
        "basic.auth.user.info",
        "proxy",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "max.retries",
        "retries.wait.ms",
        "retries.max.wait.ms",
        *_BEARER,
    }
)
_LAKE: Final = frozenset({"lake", "topic"})
_BOTH: Final = frozenset({"cache.capacity", "cache.latest.ttl.sec"})
KEYS: Final = _HTTP | _LAKE | _BOTH


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How a registry is reached. `bearer`: its keys as they were given. Times in milliseconds, `timeout_s` in seconds.

    `ca`: a file or a folder of certificates; None: those of the machine; False: any certificate is taken.
    """

    urls: tuple[str, ...]
    timeout_s: float = 30.0
    user: tuple[str, str] | None = field(default=None, repr=False)
    proxy: str | None = None
    ca: str | bool | None = None
    certificate: str | None = None
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    retries: int = 3
    wait_ms: int = 1000
    most_wait_ms: int = 20_000
    bearer: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """`http`: None for a client of a lake. `capacity`: of each cache; `latest_ttl_s`: None does not keep the newest."""

    http: HttpSettings | None
    capacity: int = 1000
    latest_ttl_s: float | None = None

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> "ClientSettings":
        """Of a client's configuration. Raises `ValueError` and `TypeError`, which name the key."""
        unknown = sorted({*conf} - KEYS)
        if unknown:
            raise ValueError(f"Unrecognized properties: {', '.join(unknown)}. There are {', '.join(sorted(KEYS))}.")
        if ("url" in conf) == ("lake" in conf):
            raise ValueError("The client needs either url, a registry's address, or lake, and not both.")
        capacity = int(_number(conf, "cache.capacity", 1000))
        if capacity < 1:
            raise ValueError("cache.capacity must be 1 or more.")
        ttl = _number(conf, "cache.latest.ttl.sec", None)
        if "url" in conf:
            return cls(_http(conf), capacity, ttl)
        needless = sorted({*conf} & _HTTP)
        if needless:
            raise ValueError(f"{', '.join(needless)}: a client of a lake sends no requests. Leave it out, or give url.")
        return cls(None, capacity, ttl)


def _http(conf: Mapping[str, Any]) -> HttpSettings:
    if not isinstance(conf["url"], str):
        raise TypeError(f"url must be a str, not {type(conf['url']).__name__}.")
    given = [one.strip().rstrip("/") for one in conf["url"].split(",") if one.strip()]
    if not given or not all(one.startswith(("http://", "https://")) for one in given):
        raise ValueError(f"url must be an address such as http://localhost:8081, not {conf['url']!r}.")
    users = [one for one in map(_user_of, given) if one is not None]
    user = _user(conf, users[0] if users else None)
    bearer = {key: conf[key] for key in _BEARER if conf.get(key) is not None}
    if bearer and "bearer.auth.credentials.source" not in bearer:
        raise ValueError(
            f"{', '.join(bearer)}: they need bearer.auth.credentials.source, one of OAUTHBEARER,"
            " OAUTHBEARER_AZURE_IMDS, STATIC_TOKEN and CUSTOM."
        )
    if bearer and user is not None:
        raise ValueError("A client logs in by a password or by a token: leave one of them out.")
    certificate, key = _text(conf, "ssl.certificate.location"), _text(conf, "ssl.key.location")
    password = _text(conf, "ssl.key.password")
    if certificate is None and (key is not None or password is not None):
        raise ValueError("ssl.key.location and ssl.key.password need ssl.certificate.location.")
    ca = conf.get("ssl.ca.location")
    if not (ca is None or ca is False or isinstance(ca, str)):
        raise TypeError("ssl.ca.location must be a file's or a folder's name, or False.")
    return HttpSettings(
        urls=tuple(map(_without_user, given)),
        timeout_s=_number(conf, "timeout", 30.0),
        user=user,
        proxy=_text(conf, "proxy"),
        ca=ca,
        certificate=certificate,
        key=key,
        key_password=password,
        retries=int(_number(conf, "max.retries", 3)),
        wait_ms=int(_number(conf, "retries.wait.ms", 1000)),
        most_wait_ms=int(_number(conf, "retries.max.wait.ms", 20_000)),
        bearer=bearer,
    )


def _user(conf: Mapping[str, Any], in_url: tuple[str, str] | None) -> tuple[str, str] | None:
    info = _text(conf, "basic.auth.user.info")
    if info is None:
        return in_url
    if in_url is not None:
        raise ValueError("The user is in url and in basic.auth.user.info: leave one of them out.")
    name, colon, password = info.partition(":")
    if not colon:
        raise ValueError("basic.auth.user.info must be user:password.")
    return name, password


def _user_of(url: str) -> tuple[str, str] | None:
    parts = urlsplit(url)
    return None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _text(conf: Mapping[str, Any], key: str) -> str | None:
    value = conf.get(key)
    if not (value is None or isinstance(value, str)):
        raise TypeError(f"{key} must be a str, not {type(value).__name__}.")
    return value


def _number(conf: Mapping[str, Any], key: str, default: float | None) -> Any:
    value = conf.get(key)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{key} must be a number, not {type(value).__name__}.")
    if value < 0:
        raise ValueError(f"{key} must not be negative.")
    return value
