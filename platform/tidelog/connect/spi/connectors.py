"""What a connector implements: its configuration, its tasks' configurations, and what it guarantees."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from tidelog.connect.config.definition import ConfigDef, ConfigValue
from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.spi.applications import ApplicationTask
from tidelog.connect.spi.sinks import SinkTask
from tidelog.connect.spi.sources import SourceTask

# A connector's or a task's configuration as it was given: texts by keys.
RawConfig = Mapping[str, str]
# (source partition, source offset | None) each.
SourceOffsets = Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]


class ConnectorContext(Protocol):
    """What a worker gives a running connector."""

    def request_task_reconfiguration(self) -> None:
        """Ask for `task_configs` again: what the tasks are to read has changed. Any thread may call it."""

    def raise_error(self, error: Exception) -> None:
        """Report that the connector can't go on: it becomes FAILED. Any thread may call it."""


class Connector:
    """A kind of source or sink, one object for each running connector of it.

    `names`: what `connector.class` may say, the Java class first that it stands for, so that configurations of Kafka
    Connect are taken as they are. `version`: as the plugins' list shows it. `guarantee`: one sentence for `tidelog
    connect plugins`: what is delivered once, under which configuration, and what is not. `keys`: its own, unless
    `config_def` is overridden.

    `start`, `task_configs` and `stop` run in one thread of the connector, and may block; `start` should do no more
    than check that the other system answers, for tasks do the reading and writing.
    """

    names: ClassVar[tuple[str, ...]]
    version: ClassVar[str]
    guarantee: ClassVar[str]
    keys: ClassVar[ConfigDef]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The connector's own keys; those of every connector (name, tasks.max, converters, ...) are the worker's."""
        return cls.keys

    @classmethod
    def check_together(cls, values: Mapping[str, ConfigValue]) -> None:
        """Add to the keys' errors what only several of them together show; override it where there is such."""

    @classmethod
    def validate(cls, config: RawConfig) -> list[ConfigValue]:
        """What is to say of each key; override to add what the other system shows."""
        values = cls.config_def().validate(config)
        cls.check_together({value.name: value for value in values})
        return values

    def start(self, config: RawConfig, context: ConnectorContext) -> None:  # noqa: ARG002
        """Check the configuration and keep it as `config`; override to begin more.

        Raises `ConnectConfigError` with the first thing that `validate` finds wrong, or another `ConnectError`: the
        connector becomes FAILED.
        """
        errors = [error for value in self.validate(config) for error in value.errors]
        if errors:
            raise ConnectConfigError(errors[0])
        self.config: RawConfig = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[RawConfig]:  # noqa: ARG002
        """The configuration of each task, from 0 to `max_tasks` of them: one of its own, unless it is overridden.

        The same state must give the same ones.
        """
        return [self.config]

    def stop(self) -> None:
        """End: no other call comes after it."""


class ExactlyOnceSupport(StrEnum):
    """Whether a source can be delivered exactly once under a configuration (KIP-618)."""

    SUPPORTED = "SUPPORTED"
    UNSUPPORTED = "UNSUPPORTED"


class SourceConnector(Connector):
    """A connector that reads another system into topics."""

    task_class: ClassVar[type[SourceTask] | type[ApplicationTask]]

    @classmethod
    def exactly_once_support(cls, config: RawConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Whether every record of the source has an offset that its tasks go on after, once (KIP-618)."""
        return ExactlyOnceSupport.UNSUPPORTED

    @classmethod
    def alter_offsets(cls, config: RawConfig, offsets: SourceOffsets) -> bool:  # noqa: ARG003
        """Check offsets that an administrator writes (KIP-875): (source partition, source offset | None to reset).

        Raises `ConnectError` for one that its tasks can't go on after. True says that they were checked; False, that
        the worker writes them unchecked. A connector that keeps a position in the other system moves it here.
        """
        return False


class SinkConnector(Connector):
    """A connector that writes topics to another system."""

    task_class: ClassVar[type[SinkTask] | type[ApplicationTask]]

    def task_configs(self, max_tasks: int) -> Sequence[RawConfig]:
        """As many tasks as there may be, which share the topics' partitions."""
        return [self.config] * max_tasks

    @classmethod
    def alter_offsets(cls, config: RawConfig, offsets: Mapping[tuple[str, int], int | None]) -> bool:  # noqa: ARG003
        """As of sources, with {(topic, partition): offset, None to reset}."""
        return False
