"""A broker's settings, of its configuration file and of the environment, which comes first."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from tidelog.access.token_settings import TokenSettings
from tidelog.broker.base.settings import PLACES, BrokerSettings
from tidelog.cli.serving.kafka_file import GivenSetting, Problems, TakenFile, no_setting, take
from tidelog.cli.serving.listener_config import addresses_of, advertised_of, inter_broker_of, listeners_of
from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.keys import FieldKey, KeyTable, KeyWords, keys_of
from tidelog.log.base.typed_values import listed, nearest
from tidelog.log.config.broker_keys import BROKER_KEYS
from tidelog.server.base.listeners import Address

# Where a broker listens without any configuration.
DEFAULT_LISTENERS: Final = {"PLAINTEXT": ("127.0.0.1", 9092)}
_PREFIX: Final = "TIDELOG_BROKER_"
# {variable of the environment: key}: TIDELOG_BROKER_MAX_CONNECTIONS is max.connections.
VARIABLES: Final = {_PREFIX + name.upper().replace(".", "_"): key for name, key in BROKER_KEYS.items()}
_TOKENS: Final = "sasl.oauthbearer."

Given = Mapping[str, GivenSetting]


class _EnvironmentWords(KeyWords[FieldKey]):
    def value(self, name: str, key: FieldKey, given: str) -> GivenSetting:  # noqa: ARG002
        return GivenSetting(given, f"The environment has {name}")

    def unknown(self, name: str, known: Iterable[str]) -> UsageProblemError:
        return no_setting("The environment", name, nearest(name, known))


_ENVIRONMENT: Final = KeyTable(VARIABLES, _EnvironmentWords())


def given_by_file(config: Mapping[str, str], path: str) -> dict[str, GivenSetting]:
    """{setting: what the file has}. Raises `UsageProblemError` with all that is wrong with the file's keys."""
    taken = take(config, path)
    taken.problems.refuse()
    return taken.given


def given_by_environment(environment: Mapping[str, str]) -> dict[str, GivenSetting]:
    """{setting: what the environment has}. Raises `UsageProblemError` for variables that are none."""
    settings: dict[str, GivenSetting] = {}
    problems = Problems()
    for variable, text in environment.items():
        if variable.startswith(_PREFIX):
            with problems.noted():
                settings |= _ENVIRONMENT.read([(variable, text)])
    problems.refuse()
    return settings


def settings_of(
    given: Given, addresses: Mapping[str, Address] | None = None, problems: Problems | None = None
) -> BrokerSettings:
    """The settings. `addresses`: {listener: (host, port)} in place of `listeners`.

    What is wrong is added to `problems`; without them it is raised, all at once, as `UsageProblemError`.
    """
    collected = Problems() if problems is None else problems
    settings = _settings(given, addresses, collected)
    if problems is None:
        collected.refuse()
    return settings


def _settings(given: Given, addresses: Mapping[str, Address] | None, problems: Problems) -> BrokerSettings:
    texts = {name: one.text.strip() for name, one in given.items()}
    if addresses is None:
        addresses = DEFAULT_LISTENERS
        with problems.noted():
            addresses = addresses_of("listeners", texts.get("listeners", "")) or DEFAULT_LISTENERS
    listeners = listeners_of(texts, addresses, problems)
    settings = BrokerSettings(listeners)
    with problems.noted():
        settings = replace(settings, id=_broker_id(given))
    with problems.noted():
        settings = replace(settings, advertised=advertised_of(texts, addresses))
    with problems.noted():
        settings = replace(settings, inter_broker=inter_broker_of(texts, addresses, listeners))
    with problems.noted():
        settings = replace(settings, access=replace(settings.access, super_users=_super_users(texts)))
    with problems.noted():
        settings = replace(settings, sasl=replace(settings.sasl, tokens=_tokens(given)))
        if settings.sasl.tokens is None and any("OAUTHBEARER" in one.mechanisms for one in listeners.values()):
            raise UsageProblemError(
                "sasl.enabled.mechanisms has OAUTHBEARER, which needs the public keys of the tokens' issuer: give"
                f" {_TOKENS}jwks.endpoint.url."
            )
    for name in sorted((given.keys() & PLACES.keys()) - {"broker.id"}):
        with problems.noted():
            settings = settings.with_value(name, given[name].value(BROKER_KEYS[name]))
    return settings


def checked(
    environment: Mapping[str, str], config: Mapping[str, str], path: str, listener: Address | None = None
) -> tuple[BrokerSettings, TakenFile]:
    """The settings of a file and of the environment, and what became of the file's keys.

    `listener`: an option's. All that is wrong is in the `problems` of the second.
    """
    taken = take(config, path)
    given = dict(taken.given)
    with taken.problems.noted():
        given |= given_by_environment(environment)
    if listener is not None and "listeners" in given:
        taken.problems.add(f"{given['listeners'].said}, and --listener is given, too. Give one of them.")
    return settings_of(given, None if listener is None else {"PLAINTEXT": listener}, taken.problems), taken


def _broker_id(given: Given) -> int | None:
    ids = {given[name].value(BROKER_KEYS[name]) for name in ("broker.id", "node.id") if name in given}
    if len(ids) > 1:
        raise UsageProblemError("broker.id and node.id differ. They are one setting: give one of them.")
    return next(iter(ids), None)


def _super_users(texts: Mapping[str, str]) -> frozenset[str]:
    users = listed(texts.get("super.users", ""), ";")
    for one in users:
        if not one.startswith("User:"):
            raise UsageProblemError(f"super.users: {one!r} is no principal. Write User:NAME, separated by semicolons.")
    return frozenset(users)


def _tokens(given: Given) -> TokenSettings | None:
    fields = {name: given[key.name].value(key) for name, key in keys_of(TokenSettings).items() if key.name in given}
    if fields and not fields.get("jwks"):
        raise UsageProblemError(f"Settings of {_TOKENS}* need {_TOKENS}jwks.endpoint.url: the public keys of tokens.")
    return TokenSettings(**fields) if fields else None
