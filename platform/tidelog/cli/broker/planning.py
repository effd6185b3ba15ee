"""Brokers that are planned, by options, a file and the environment; and the settings of those that were."""

from collections.abc import Mapping
from dataclasses import replace

from tidelog.broker.base.settings import BrokerSettings
from tidelog.cli.serving.config_file import read_config
from tidelog.cli.serving.configuration import checked, given_by_environment, given_by_file, settings_of
from tidelog.cli.serving.plan import BrokerPlan
from tidelog.server.base.listeners import Address


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
