"""A broker's settings, of its configuration file and of the environment, which comes first."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from tidelog.access.token_settings import TokenSettings
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.base.setting_keys import ALL_SETTINGS, PREFIX, SETTINGS
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.server.listeners import Address
from tidelog.cli.broker.config_file import read_config
from tidelog.cli.broker.environment import GivenSetting, with_value
from tidelog.cli.broker.kafka_file import Problems, TakenFile, take
from tidelog.cli.broker.listener_config import addresses_of, advertised_of, inter_broker_of, listed, listeners_of
from tidelog.cli.broker.plan import BrokerPlan
from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.typed_values import MAX_INT, Flag, Whole, nearest

# Where a broker listens without any configuration.
DEFAULT_LISTENERS: Final = {"PLAINTEXT": ("127.0.0.1", 9092)}
_VALUES: Final = {one.name: one for one in SETTINGS}
_TOKENS: Final = "sasl.oauthbearer."

Given = Mapping[str, GivenSetting]


def given_by_file(config: Mapping[str, str], path: str) -> dict[str, GivenSetting]:
    """{setting: what the file has}. Raises `UsageProblemError` with all that is wrong with the file's keys."""
    taken = take(config, path)
    taken.problems.refuse()
    return taken.given


def given_by_environment(environment: Mapping[str, str]) -> dict[str, GivenSetting]:
    """{setting: what the environment has}. Raises `UsageProblemError` for variables that are none."""
    by_variable = {one.variable: name for name, one in ALL_SETTINGS.items()}
    found, problems = {}, Problems()
    for variable, text in environment.items():
        if variable in by_variable:
            found[by_variable[variable]] = GivenSetting(text, f"The environment has {variable}")
        elif variable.startswith(PREFIX):
            problems.add(
                f"The environment has {variable}, which is no setting of a broker."
                f" {_hint(variable, by_variable, 'docs/brokers.md')}"
            )
    problems.refuse()
    return found


def settings_of(
    given: Given, addresses: Mapping[str, Address] | None = None, problems: Problems | None = None
) -> BrokerSettings:
    """The settings. `addresses`: {listener: (host, port)} in place of `listeners`.

    What is wrong is added to `problems`; without them it is raised, all at once, as `UsageProblemError`.
    """
    found = Problems() if problems is None else problems
    settings = _settings(given, addresses, found)
    if problems is None:
        found.refuse()
    return settings


def _settings(given: Given, addresses: Mapping[str, Address] | None, problems: Problems) -> BrokerSettings:
    texts = {name: one.text.strip() for name, one in given.items() if name not in _VALUES}
    if addresses is None:
        addresses = DEFAULT_LISTENERS
        with problems.noted():
            addresses = addresses_of("listeners", texts.get("listeners", "")) or DEFAULT_LISTENERS
    listeners = listeners_of(texts, addresses, problems)
    settings = BrokerSettings(listeners, rack=texts.get("broker.rack") or None)
    with problems.noted():
        settings = replace(settings, id=_broker_id(given))
    with problems.noted():
        settings = replace(settings, advertised=advertised_of(texts, addresses))
    with problems.noted():
        settings = replace(settings, inter_broker=inter_broker_of(texts, addresses, listeners))
    with problems.noted():
        settings = replace(settings, access=_access(given))
    with problems.noted():
        settings = replace(settings, sasl=replace(settings.sasl, tokens=_tokens(given)))
        if settings.sasl.tokens is None and any("OAUTHBEARER" in one.mechanisms for one in listeners.values()):
            raise UsageProblemError(
                "sasl.enabled.mechanisms has OAUTHBEARER, which needs the public keys of the tokens' issuer: give"
                f" {_TOKENS}jwks.endpoint.url."
            )
    for name in sorted(given.keys() & _VALUES):
        with problems.noted():
            settings = with_value(settings, _VALUES[name], given[name])
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


def plan_of(
    lake: str,
    environment: Mapping[str, str],
    listener: Address | None,
    config_path: str | None,
    broker_id: int | None,
    rack: str | None,
    metrics: Address | None,
    store: Mapping[str, str],
) -> BrokerPlan:
    """A broker as its command's options, its file and the environment have it. Raises `UsageProblemError`."""
    config, path = ({}, "") if config_path is None else (read_config(config_path), config_path)
    settings, taken = checked(environment, config, path, listener)
    taken.problems.refuse()
    return BrokerPlan(
        lake,
        {name: (one.host, one.port) for name, one in settings.listeners.items()},
        settings.id if broker_id is None else broker_id,
        settings.rack if rack is None else rack,
        metrics,
        store,
        settings.advertised,
        config,
        path,
    )


def planned_settings(plan: BrokerPlan, environment: Mapping[str, str]) -> BrokerSettings:
    """The settings of a broker that was planned. Raises `UsageProblemError`."""
    given = given_by_file(plan.config, plan.config_path) | given_by_environment(environment)
    return replace(settings_of(given, plan.listeners), id=plan.id, rack=plan.rack, advertised=plan.advertised)


def _broker_id(given: Given) -> int | None:
    ids = {_value(given, name, Whole(-1, MAX_INT), None) for name in ("broker.id", "node.id") if name in given}
    if len(ids) > 1:
        raise UsageProblemError("broker.id and node.id differ. They are one setting: give one of them.")
    found = next(iter(ids), None)
    return None if found == -1 else found  # as Kafka's broker.id=-1: one that is free


def _access(given: Given) -> AccessSettings:
    users = listed(given["super.users"].text, ";") if "super.users" in given else []
    for one in users:
        if not one.startswith("User:"):
            raise UsageProblemError(f"super.users: {one!r} is no principal. Write User:NAME, separated by semicolons.")
    topic = given["audit.topic"].text.strip() if "audit.topic" in given else ""
    return AccessSettings(
        frozenset(users), _value(given, "allow.everyone.if.no.acl.found", Flag(), None), topic or None
    )


def _tokens(given: Given) -> TokenSettings | None:
    def text(name: str, default: str = "") -> str:
        return given[_TOKENS + name].text.strip() if _TOKENS + name in given else default

    keys = text("jwks.endpoint.url")
    if not keys:
        if any(name.startswith(_TOKENS) for name in given):
            raise UsageProblemError(
                f"Settings of {_TOKENS}* need {_TOKENS}jwks.endpoint.url: the public keys of tokens."
            )
        return None
    usual = TokenSettings(keys)
    skew = _value(given, _TOKENS + "clock.skew.seconds", Whole(0, 3600, of="seconds"), usual.clock_skew_s)
    refresh_ms = _value(given, _TOKENS + "jwks.endpoint.refresh.ms", Whole(1, MAX_INT, of="ms"), None)
    return replace(
        usual,
        audiences=tuple(listed(text("expected.audience"))),
        issuer=text("expected.issuer") or None,
        sub_claim=text("sub.claim.name", usual.sub_claim),
        scope_claim=text("scope.claim.name", usual.scope_claim),
        scopes=tuple(listed(text("expected.scope"))),
        clock_skew_s=skew,
        refresh_s=usual.refresh_s if refresh_ms is None else refresh_ms / 1000,
    )


def _value(given: Given, name: str, kind: Whole | Flag, default: Any) -> Any:
    return given[name].parse(name, kind) if name in given else default


def _hint(name: str, known: Iterable[str], page: str) -> str:
    near = nearest(name, known)
    return f"Do you mean {near}?" if near else f"{page} has all of them."
