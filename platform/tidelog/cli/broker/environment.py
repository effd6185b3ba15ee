"""Settings of brokers as they are given: by a file, or by the environment, under TIDELOG_BROKER_ and Kafka's name."""

from dataclasses import dataclass, field, replace
from typing import Any

from tidelog.broker.base.setting_keys import ValueSetting
from tidelog.broker.base.settings import BrokerSettings
from tidelog.commands.failures import UsageProblemError
from tidelog.log.base.typed_values import Flag, Whole


@dataclass(frozen=True, slots=True)
class GivenSetting:
    """A value that was given for a setting, and how to say that it was: "The environment has …"."""

    text: str = field(repr=False)
    said: str

    def parse(self, name: str, kind: Whole | Flag) -> Any:
        """The value, for the setting `name`. Raises `UsageProblemError`."""
        try:
            return kind.parse(self.text.strip())
        except ValueError as e:
            raise UsageProblemError(f"{self.said}={self.text!r}, and {name} is {kind.allowed}.") from e


def with_value(settings: BrokerSettings, setting: ValueSetting, given: GivenSetting) -> BrokerSettings:
    """The settings with one more. Raises `UsageProblemError`."""
    value = setting.field_value(given.parse(setting.name, setting.kind))
    if setting.group:
        changed = {setting.group: replace(getattr(settings, setting.group), **{setting.field: value})}
    else:
        changed = {setting.field: value}
    return replace(settings, **changed)
