"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: of topics, of the lake, of brokers, of groups, of clients.

The lake's configuration is that of all brokers: in Kafka's words the broker resource without a name, the cluster-wide
default. A single broker has only what it was started with.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tidelog.broker.admin.client_metrics import ClientMetricsConfigs
from tidelog.broker.admin.config_keys import NOT_BY_BROKERS, broker_keys, described_fields
from tidelog.broker.admin.refusals import repeated, result
from tidelog.broker.base.calls import Call, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.base.group_configs import bounds_of, inherited
from tidelog.broker.wire.errors import InvalidRequestError, UnsupportedVersionError
from tidelog.broker.wire.messages import Answer
from tidelog.groups.config import GroupConfig
from tidelog.groups.model import Decision, GroupView
from tidelog.groups.rules.configuring import configure
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import InvalidConfigError, TidelogError
from tidelog.log.config.overrides import KeyDescription
from tidelog.operations.configs import (
    KeyChange,
    KeyOperation,
    alter_config,
    changed_values,
    describe_config,
    replace_config,
)

# Kafka's numbers. Source: `ConfigResource.Type`, `AlterConfigOp.OpType`.
TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32
_OPERATIONS: Final = dict(enumerate(KeyOperation))


class ConfigHandlers:
    """Answers what shows and changes configurations."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client_metrics = ClientMetricsConfigs(context)
        self._groups = GroupLog(context.lake)

    async def list_resources(self, call: Call) -> Reply:
        """ListConfigResources: names of resources that have, or may have, a configuration (KIP-1142).

        Version 0 asks for those of clients' metrics alone. Source: `KafkaApis.handleListConfigResources`.
        """
        every = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)
        wanted = set(getattr(call.body, "resource_types", (CLIENT_METRICS,))) or set(every)
        if wanted.difference(every):
            return {"error_code": UnsupportedVersionError.kafka_code, "config_resources": ()}
        named: list[Answer] = []
        for kind in every:
            if kind in wanted:
                names = await self._context.blocking(self._names, kind)
                named.extend({"resource_name": name, "resource_type": kind} for name in names)
        return {"error_code": 0, "config_resources": named}

    def _names(self, kind: int) -> Sequence[str]:
        """The resources of a type. In a thread."""
        if kind == TOPIC:
            return sorted(self._context.lake.topics())
        if kind in (BROKER, BROKER_LOGGER):
            return [str(node.id) for node in self._context.cluster().nodes]
        return self._groups.configured() if kind == GROUP else self._client_metrics.names()

    async def describe(self, call: Call) -> Reply:
        """DescribeConfigs."""
        synonyms, documentation = call.body.include_synonyms, getattr(call.body, "include_documentation", False)
        fixed = {NOT_BY_BROKERS, *(key.name for key in self._own_keys())}

        async def one(resource: Any) -> Answer:
            named = _named(resource)
            try:
                keys = await self._keys(resource.resource_type, resource.resource_name)
            except TidelogError as e:
                return {**named, **result(e), "configs": ()}
            wanted = set(resource.configuration_keys or ())
            told = [
                described_fields(key, read_only=key.name in fixed, synonyms=synonyms, documentation=documentation)
                for key in keys
                if not wanted or key.name in wanted
            ]
            return {**named, **result(), "configs": told}

        return {"results": await asyncio.gather(*(one(resource) for resource in call.body.resources))}

    async def _keys(self, kind: int, name: str) -> Sequence[KeyDescription]:
        context = self._context
        if kind == TOPIC:
            return await context.blocking(describe_config, context.lake, name)
        if kind == BROKER:
            keys = await context.blocking(describe_config, context.lake, None)
            if not name:  # what was set for all brokers, and nothing else
                return [key for key in keys if not key.is_default]
            self._require_this_broker(name)
            return sorted([*keys, *self._own_keys()], key=lambda key: key.name)
        if kind == CLIENT_METRICS:
            return self._client_metrics.describe(name)
        _require_group(kind, name)
        texts = await context.blocking(self._groups.config, name)
        return GroupConfig.parse(texts, inherited(context.settings.groups)).describe()

    def _own_keys(self) -> list[KeyDescription]:
        context = self._context
        view = context.cluster()
        node = view.node(view.node_id) or view.controller
        return broker_keys(node, context.settings, context.lake.uri)

    def _require_this_broker(self, name: str) -> None:
        node_id = self._context.node_id
        if not name.isascii() or not name.isdigit():
            raise InvalidRequestError(f"Broker id must be an integer, but it is: {name}")
        if int(name) != node_id:
            raise InvalidRequestError(
                f"Unexpected broker id, expected {node_id} or empty string, but received {name}: what a broker was"
                " started with, only that broker knows. Ask it."
            )

    async def replace(self, call: Call) -> Reply:
        """AlterConfigs: set what is named, and reset everything else."""

        def replace(resource: Any) -> None:
            missing = sorted(one.name for one in resource.configs if one.value is None)
            if missing:
                raise InvalidRequestError(f"Null value not supported for : {','.join(missing)}")
            values = {one.name: one.value for one in resource.configs}
            if resource.resource_type == GROUP:
                own = self._groups.config(resource.resource_name)
                self._configure(resource, {**dict.fromkeys(own), **values}, call.body.validate_only)
                return
            if self._is_of_one_broker(resource) and not values:
                return
            if resource.resource_type == CLIENT_METRICS:
                self._client_metrics.replace(resource.resource_name, values, validate_only=call.body.validate_only)
                return
            topic = self._topic(resource)
            if topic is None:
                own = self._context.lake.config().overrides
                values |= {key: value for key, value in own.items() if key == NOT_BY_BROKERS}
            replace_config(self._context.lake, topic, values, validate_only=call.body.validate_only)

        return await self._each(call, replace)

    async def alter(self, call: Call) -> Reply:
        """IncrementalAlterConfigs: do what is said of each key, and leave everything else."""

        def alter(resource: Any) -> None:
            changes = [_change(one.name, one.config_operation, one.value) for one in resource.configs]
            if resource.resource_type == GROUP:
                self._configure(resource, changed_values(GroupConfig(), changes), call.body.validate_only)
                return
            if resource.resource_type == CLIENT_METRICS:
                self._client_metrics.alter(resource.resource_name, changes, validate_only=call.body.validate_only)
                return
            resets = all(change.operation is KeyOperation.DELETE for change in changes)
            nothing = resets and self._is_of_one_broker(resource)
            topic = None if nothing else self._topic(resource)
            alter_config(self._context.lake, topic, changes, validate_only=nothing or call.body.validate_only)

        return await self._each(call, alter)

    async def _each(self, call: Call, change: Any) -> Reply:
        """Change each resource by itself, one after the other: two may be about the same lake."""
        resources = call.body.resources
        twice = repeated((one.resource_type, one.resource_name) for one in resources)
        told = {}
        for resource in resources:
            named = (resource.resource_type, resource.resource_name)
            try:
                if named in twice:
                    raise InvalidRequestError("Each resource must appear at most once.")
                keys = repeated(one.name for one in resource.configs)
                if keys:
                    raise InvalidRequestError(f"Error due to duplicate config keys: {','.join(sorted(keys))}")
                await self._context.blocking(change, resource)
                if resource.resource_type == TOPIC:
                    await self._context.topics.look(resource.resource_name)
                elif resource.resource_type == CLIENT_METRICS:
                    await self._context.access.look_now()
                outcome = result()
            except TidelogError as e:
                outcome = result(e)
            told[named] = {**_named(resource), **outcome}
        return {"responses": list(told.values())}

    def _topic(self, resource: Any) -> str | None:
        """The topic that a resource stands for, None for the lake. Raises for one that can't be changed like that."""
        kind, name = resource.resource_type, str(resource.resource_name)
        if kind == TOPIC:
            return name
        if kind == BROKER:
            if self._is_of_one_broker(resource):
                raise InvalidRequestError(
                    f"Broker {name} has no dynamic configuration of its own: brokers share that of the lake. Change it"
                    " for all of them (the broker resource without a name; kafka-configs --entity-default)."
                )
            self._require_dynamic(resource)
            return None
        _require_group(kind, name)
        raise InvalidRequestError(f"Group {name} is no topic.")

    def _configure(self, resource: Any, changes: Mapping[str, str | None], validate_only: bool) -> None:
        """Change what a group is configured with. In a thread."""
        group_id = str(resource.resource_name)
        _require_group(GROUP, group_id)
        bounds = bounds_of(self._context.settings.groups)

        def rule(view: GroupView) -> Decision[GroupConfig]:
            decision = configure(view, group_id, changes, bounds)
            return replace(decision, config=None) if validate_only else decision

        self._groups.decide(group_id, rule)

    def _is_of_one_broker(self, resource: Any) -> bool:
        """Whether a change is of a single broker, where nothing is set: there is nothing that a reset would change.

        kafka-reassign-partitions resets throttles that way. Raises for another broker than this, and for keys that no
        broker can change.
        """
        if resource.resource_type != BROKER or not resource.resource_name:
            return False
        self._require_dynamic(resource)
        self._require_this_broker(resource.resource_name)
        return True

    def _require_dynamic(self, resource: Any) -> None:
        own, keys = {key.name for key in self._own_keys()}, sorted(one.name for one in resource.configs)
        fixed = [key for key in keys if key in own]
        if fixed:
            raise InvalidConfigError(
                f"Cannot update these configs dynamically: {','.join(fixed)}. A broker takes them when it is"
                " started: start it again with others."
            )
        if NOT_BY_BROKERS in keys:
            raise InvalidConfigError(
                f"Cannot update these configs dynamically: {NOT_BY_BROKERS}. It says whose ACLs hold, and is"
                " changed with the store's credentials: 'tidelog lake alter', while no broker runs."
            )


def _change(name: str, number: int, value: str | None) -> KeyChange:
    """What an incremental change does with one key. Raises `InvalidRequestError`."""
    operation = _OPERATIONS.get(number)
    if operation is None:
        raise InvalidRequestError(f"Unknown operation type {number} for key {name}: 0 to {max(_OPERATIONS)} are.")
    if value is None and operation is not KeyOperation.DELETE:
        raise InvalidRequestError(f"Null value not supported for : {name}")
    return KeyChange(name, operation, value or "")


def _require_group(kind: int, name: str) -> None:
    if kind != GROUP:
        raise InvalidRequestError(
            f"Unexpected resource type {kind}: topics ({TOPIC}), brokers ({BROKER}), groups ({GROUP}) and"
            f" subscriptions of clients' metrics ({CLIENT_METRICS}) have configurations here."
        )
    if not name:
        raise InvalidRequestError("Group name must not be empty.")


def _named(resource: Any) -> Answer:
    return {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
