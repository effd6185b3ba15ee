"""The configuration of a client: confluent-kafka's keys, and those of a lake."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from tidelog.log.base import keys
from tidelog.log.base.typed_values import ReadBy, listed, nearest
from tidelog.log.delta.layout import SCHEMAS_TOPIC

# What follows reads values; what it says of wrong ones goes on after the key's name.


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be a str, not {type(value).__name__}")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"must be a number, not {type(value).__name__}")
    if value < 0:
        raise ValueError("must not be negative")
    return value


def _capacity(value: Any) -> int:
    if (number := int(_number(value))) < 1:
        raise ValueError("must be 1 or more")
    return number


def _addresses(value: Any) -> tuple[str, ...]:
    addresses = tuple(one.rstrip("/") for one in listed(_text(value)))
    if not addresses or not all(one.startswith(("http://", "https://")) for one in addresses):
        raise ValueError(f"must be an address such as http://localhost:8081, not {value!r}")
    return addresses


def _user(value: Any) -> tuple[str, str]:
    name, colon, password = _text(value).partition(":")
    if not colon:
        raise ValueError("must be user:password")
    return name, password


def _authorities(value: Any) -> Any:
    if not (value is False or isinstance(value, str)):
        raise TypeError("must be a file's or a folder's name, or False")
    return value


_TEXT: Final = ReadBy("a text", _text)
_SECONDS: Final = ReadBy("seconds, 0 or more", _number)
_WHOLE: Final = ReadBy("a whole number, 0 or more", lambda value: int(_number(value)))
_ANY: Final = ReadBy("any value", lambda value: value)
# What they take goes by the first one (`tokens.py`).
_BEARER: Final = {
    f"bearer.auth.{name}": keys.FieldKey(f"bearer.auth.{name}", _ANY, "how the client has tokens that it logs in by")
    for name in (
        "credentials.source", "token", "logical.cluster", "identity.pool.id", "client.id", "client.secret", "scope",
        "issuer.endpoint.url", "issuer.endpoint.query", "custom.provider.function", "custom.provider.config",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How a registry is reached. `bearer`: its keys as they were given. Times in milliseconds, `timeout_s` in seconds.

    `ca`: a file or a folder of certificates; None: those of the machine; False: any certificate is taken.
    """

    urls: tuple[str, ...] = keys.key("url", (), ReadBy("addresses", _addresses), "the registry's, with commas between")
    timeout_s: float = keys.key("timeout", 30.0, _SECONDS, "how long a request may take")
    user: tuple[str, str] | None = keys.key(
        "basic.auth.user.info", None, ReadBy("user:password", _user), "the user that logs in", secret=True
    )
    proxy: str | None = keys.key("proxy", None, _TEXT, "a proxy's address")
    ca: str | bool | None = keys.key(
        "ssl.ca.location", None, ReadBy("a file, a folder, or False", _authorities), "the authorities that are trusted"
    )
    certificate: str | None = keys.key("ssl.certificate.location", None, _TEXT, "a file of the client's certificate")
    key: str | None = keys.key("ssl.key.location", None, _TEXT, "a file of its private key")
    key_password: str | None = keys.key("ssl.key.password", None, _TEXT, "of the private key", secret=True)
    retries: int = keys.key("max.retries", 3, _WHOLE, "how often a request is repeated at each URL")
    wait_ms: int = keys.key("retries.wait.ms", 1000, _WHOLE, "the pause before the first, which doubles")
    most_wait_ms: int = keys.key("retries.max.wait.ms", 20_000, _WHOLE, "the longest pause")
    bearer: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "HttpSettings":
        """Of the values of keys. Raises `ValueError` for those that don't go together."""
        bearer = {name: value for name, value in values.items() if name in _BEARER}
        settings = cls(**keys.fields_of(cls, values), bearer=bearer)
        in_url = next(filter(None, map(_user_of, settings.urls)), None)
        if settings.user is not None and in_url is not None:
            raise ValueError("The user is in url and in basic.auth.user.info: leave one of them out.")
        settings = replace(settings, urls=tuple(map(_without_user, settings.urls)), user=settings.user or in_url)
        if bearer and "bearer.auth.credentials.source" not in bearer:
            raise ValueError(
                f"{', '.join(bearer)}: they need bearer.auth.credentials.source, one of OAUTHBEARER,"
                " OAUTHBEARER_AZURE_IMDS, STATIC_TOKEN and CUSTOM."
            )
        if bearer and settings.user is not None:
            raise ValueError("A client logs in by a password or by a token: leave one of them out.")
        if settings.certificate is None and (settings.key is not None or settings.key_password is not None):
            raise ValueError("ssl.key.location and ssl.key.password need ssl.certificate.location.")
        return settings


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """`http`: None for a client of a lake. `capacity`: of each cache; `latest_ttl_s`: None does not keep the newest."""

    http: HttpSettings | None = None
    lake: Any = keys.key("lake", None, _ANY, "the lake that has the schemas, opened or its address")  # noqa: RUF009
    topic: str = keys.key("topic", SCHEMAS_TOPIC, _TEXT, "the lake's topic of schemas")
    capacity: int = keys.key("cache.capacity", 1000, ReadBy("1 or more", _capacity), "how much is kept of each kind")
    latest_ttl_s: float | None = keys.key("cache.latest.ttl.sec", None, _SECONDS, "how long a newest version is kept")

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> "ClientSettings":
        """Of a client's configuration. Raises `ValueError` and `TypeError`, which name the key."""
        if (conf.get("url") is None) == (conf.get("lake") is None):
            raise ValueError("The client needs either url, a registry's address, or lake, and not both.")
        table = _OF_LAKE if conf.get("url") is None else _OF_SERVER
        values = {name: value for name, value in table.read(conf.items()).items() if value is not None}
        return cls(None if table is _OF_LAKE else HttpSettings.of(values), **keys.fields_of(cls, values))


class PropertyWords(keys.KeyWords[keys.FieldKey]):
    """confluent-kafka's words. A value of None leaves its key unset."""

    def value(self, name: str, key: keys.FieldKey, given: Any) -> Any:
        """As `KeyWords` has it."""
        try:
            return None if given is None else key.kind.parse(given)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name} {error}.") from None

    def refused(self, name: str, why: str) -> ValueError:
        """As `KeyWords` has it."""
        return ValueError(f"{name}: {why}. Leave it out, or give url.")

    def unknown(self, name: Any, known: Iterable[str]) -> ValueError:
        """As `KeyWords` has it."""
        near = nearest(name, names := sorted(known))
        meant = f"The nearest known one is {near}." if near else f"There are {', '.join(names)}."
        return ValueError(f"Unrecognized properties: {name}. {meant}")


_SERVERS: Final = keys.names_of(HttpSettings) | _BEARER
KEYS: Final = _SERVERS | keys.names_of(ClientSettings)
_OF_SERVER: Final = keys.KeyTable(KEYS, PropertyWords())
_OF_LAKE: Final = keys.KeyTable(
    keys.names_of(ClientSettings),
    PropertyWords(),
    dict.fromkeys(_SERVERS, "a client of a lake sends no requests").get,
)


def _user_of(url: str) -> tuple[str, str] | None:
    parts = urlsplit(url)
    return None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
