"""From a lake's options and the environment to obstore's configuration. Pure, and nothing here shows a secret."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.typed_values import hint
from tidelog.log.storage.option_table import (
    ANY,
    BY_NAME,
    OPTIONS,
    PREFIX,
    S3_KEY_ID,
    S3_PATH_STYLE,
    S3_PROFILE,
    S3_SECRET,
    S3_TOKEN,
    SCHEMES,
    Option,
)

# obstore's keys of its HTTP client, not of the store (`obstore.store.ClientConfig`).
_CLIENT_KEYS: Final = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
# obstore's keys of how requests are repeated.
_RETRY_KEYS: Final = ("max_retries", "retry_timeout", "init_backoff", "max_backoff")
# obstore's keys whose values may be shown.
_SHOWN_KEYS: Final = re.compile(r"region|endpoint|bucket|container|account_name|project|timeout|allow_http")
# A shorter value would only garble the text that it is taken out of.
_SECRET_LENGTH: Final = 6
# What profiles of AWS call what options are.
_PROFILE_KEYS: Final = {
    "aws_access_key_id": S3_KEY_ID,
    "aws_secret_access_key": S3_SECRET,
    "aws_session_token": S3_TOKEN,
    "region": "lake.s3.region",
    "endpoint_url": "lake.s3.endpoint",
}
_KEYS: Final = (S3_KEY_ID, S3_SECRET, S3_TOKEN)
# obstore's names of a server's address, and whose server it is without one.
_ENDPOINTS: Final = ("endpoint", "endpoint_url", "base_url")
_SERVICES: Final = {"s3": "Amazon S3", "gcs": "Google Cloud Storage", "azure": "Azure Blob Storage"}

# The settings of a profile of AWS, by its name.
Profiles = Callable[[str], Mapping[str, str]]


class StoreOptions(Mapping[str, str]):
    """A store's options. What would print them shows stars where secrets are."""

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self._values = {name: _text(value) for name, value in (options or {}).items()}

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        shown = {name: "***" if is_secret(name) else value for name, value in sorted(self._values.items())}
        return f"StoreOptions({shown})"


NO_OPTIONS: Final = StoreOptions()


class Secrets(tuple[str, ...]):
    """Texts that messages must not hold. It prints as how many there are."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{len(self)} secrets"


@dataclass(frozen=True, slots=True)
class Connection:
    """Obstore's arguments: the store's configuration, its HTTP client's, and keys for S3; `retry` in ms, or times.

    `keys` are obstore's `S3Credential`, whole: obstore would complete a key with the environment's token. `place`: the
    server, for messages.
    """

    config: Mapping[str, str] = field(repr=False)
    client: Mapping[str, str] = field(repr=False)
    keys: Mapping[str, str | None] | None = field(repr=False, default=None)
    retry: Mapping[str, int] = field(repr=False, default_factory=dict)
    secrets: Secrets = field(default_factory=Secrets)
    place: str = ""


def is_secret(name: str) -> bool:
    """Whether an option's value must not be shown; that of an unknown one must not."""
    option = BY_NAME.get(name)
    return option.secret if option else not _SHOWN_KEYS.search(name.lower())


def is_store_option(name: str) -> bool:
    """Whether an entrance's option goes to the store: `lake.` and more."""
    return name.startswith(PREFIX)


def store_options(options: Mapping[str, Any]) -> StoreOptions:
    """Those of an entrance's options that go to the store. Raises `InvalidConfigError` for an unknown one."""
    chosen = StoreOptions({name: value for name, value in options.items() if is_store_option(name)})
    for name in chosen:
        known_option(name)
    return chosen


def known_option(name: str) -> Option:
    """The option of that name. Raises `InvalidConfigError` with the nearest one's."""
    if name not in BY_NAME:
        raise InvalidConfigError(f"There is no option {name!r} of a store. {hint(name, BY_NAME, 'configuration')}")
    return BY_NAME[name]


def connection(
    scheme: str, options: Mapping[str, str], environment: Mapping[str, str], profiles: Profiles
) -> Connection:
    """Obstore's arguments for a store at `scheme`://, by options first, then the environment, then AWS's profile.

    Options are those of the table (`lake.s3.region`), or obstore's own (`region`, `aws_region`). Raises
    `InvalidConfigError` for one that is unknown, another store's, given twice, or has a value that it does not take.
    """
    store = next(name for name, schemes in SCHEMES.items() if scheme in schemes)
    own = {name: value.strip() for name, value in options.items() if is_store_option(name)}
    _check(own, store, scheme)
    given, keys = _settled(store, own, environment, profiles)
    config = {name: value for name, value in options.items() if not is_store_option(name)}
    client = {_plain(name): config.pop(name) for name in list(config) if _plain(name) in _CLIENT_KEYS}
    taken = {*client, *map(_plain, config)}
    retry: dict[str, int] = {}
    for name, value in given.items():
        option = BY_NAME[name]
        if not option.key or (keys is not None and name in _KEYS):
            continue
        if option.key in _RETRY_KEYS:
            retry[option.key] = int(value)
        elif option.key not in taken:
            (client if option.key in _CLIENT_KEYS else config)[option.key] = _parsed(option, value)
        elif name in own:
            raise InvalidConfigError(f"Option {name!r} is given twice, the other time as {option.key!r}. Give it once.")
    endpoint = next((config[name] for name in endpoint_keys(config)), "")
    _allow_http(endpoint, client)
    secrets = [value for name, value in {**options, **given}.items() if is_secret(name)]
    hidden = Secrets(s for s in secrets if len(s) >= _SECRET_LENGTH)
    place = re.sub(r"//[^/@]*@", "//", endpoint) or _SERVICES[store]
    return Connection(config, client, keys, retry, hidden, place)


def _settled(
    store: str, own: Mapping[str, str], environment: Mapping[str, str], profiles: Profiles
) -> tuple[dict[str, str], dict[str, str | None] | None]:
    """The options with what they leave to the environment; S3's keys, where they are not the environment's."""
    told = {
        option.name: value
        for option in OPTIONS
        if option.store == store and (value := _variable(environment, option.variables))
    }
    if store != "s3":
        return {**told, **own}, None
    keys_given = [name for name in _KEYS if name in own]
    if keys_given:
        _check_keys(own)
        told = {name: value for name, value in told.items() if name not in _KEYS}
        return {**told, **own}, _credential(own)
    profile = own.get(S3_PROFILE) or ("" if S3_KEY_ID in told else told.get(S3_PROFILE, ""))
    if not profile:
        return {**told, **own}, None
    settings = {_PROFILE_KEYS[k]: v for k, v in profiles(profile).items() if k in _PROFILE_KEYS}
    told = {name: value for name, value in told.items() if name not in _KEYS}
    whole = {**settings, **told, **own}
    return whole, _credential(whole)


def _check(own: Mapping[str, str], store: str, scheme: str) -> None:
    for name, value in own.items():
        option = known_option(name)
        if option.store not in (store, ANY):
            theirs = " or ".join(f"{s}://" for s in SCHEMES[option.store])
            raise InvalidConfigError(
                f"Option {name!r} belongs to a store at {theirs}, and this one is at {scheme}://. Leave it out, or"
                " correct the address."
            )
        if not value:
            raise InvalidConfigError(f"Option {name!r} is empty. Give it a value, or leave it out.")
        _parsed(option, value)


def _check_keys(own: Mapping[str, str]) -> None:
    missing = [name for name in (S3_KEY_ID, S3_SECRET) if name not in own]
    if missing:
        raise InvalidConfigError(
            f"Option {missing[0]!r} is missing: a key, its secret, and its token if it has one go together, and the"
            " environment's don't complete them. Give all of them, or none."
        )
    if S3_PROFILE in own:
        raise InvalidConfigError(f"Options {S3_KEY_ID!r} and {S3_PROFILE!r} both name the caller. Give one of them.")


def _credential(options: Mapping[str, str]) -> dict[str, str | None]:
    return {
        "access_key_id": options[S3_KEY_ID],
        "secret_access_key": options[S3_SECRET],
        "token": options.get(S3_TOKEN),
    }


def _variable(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := environment.get(name, "").strip())), "")


def _parsed(option: Option, text: str) -> str:
    """The value as obstore takes it. Raises `InvalidConfigError`, which shows none of a secret."""
    try:
        value = option.kind.parse(text)
    except ValueError:
        raise InvalidConfigError(f"Option {option.name!r} is {text!r}. Set it to {option.kind.allowed}.") from None
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value}ms"
    return option.kind.text(value != (option.name == S3_PATH_STYLE) if isinstance(value, bool) else value)


def endpoint_keys(config: Mapping[str, str]) -> list[str]:
    """The names under which a store's configuration holds its server's address."""
    return [name for name in config if _plain(name) in _ENDPOINTS]


def endpoints(listed: str) -> list[str]:
    """The addresses of a store's nodes, which an endpoint lists with commas between.

    >>> endpoints("http://one:9000, http://two:9000")
    ['http://one:9000', 'http://two:9000']
    """
    return [address for part in listed.split(",") if (address := part.strip())]


def _allow_http(endpoint: str, client: dict[str, str]) -> None:
    """An endpoint without TLS is asked for by its address; obstore would refuse it with an unclear word."""
    plain = [address.lower().startswith("http://") for address in endpoints(endpoint)]
    if not any(plain):
        return
    if not all(plain):
        raise InvalidConfigError(f"The nodes {endpoint} speak TLS in part. List nodes of one store, all http or https.")
    if client.setdefault("allow_http", "true").lower() == "false":
        raise InvalidConfigError(
            f"The endpoint {endpoint} begins with http://, and the store's options (or AWS_ALLOW_HTTP) forbid to speak"
            " without TLS. Correct one of them."
        )


def _plain(key: str) -> str:
    return re.sub(r"^(aws|azure|google)_", "", key.lower())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
