"""Offsets of connectors: shown, altered and reset (KIP-875)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.runtime.offsets import committed_offsets, offset_record, set_offsets
from tidelog.connect.runtime.runs import fence
from tidelog.connect.spi.connectors import SinkConnector, SourceConnector
from tidelog.log.base.errors import TidelogError
from tidelog.operations.connector_configs import TargetState
from tidelog.operations.connector_statuses import RunState
from tidelog.server.errors import RequestRefusedError

_TOPIC, _PARTITION, _OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
# Pairs of a partition and an offset, as requests have them.
Pairs = Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]


class OffsetOperations:
    """The requests about offsets. A sink's are those of its consumer group; a source's are in connect-offsets."""

    def __init__(self, operations: ConnectOperations) -> None:
        self._operations = operations
        self._shared = operations.shared

    def offsets(self, name: str) -> dict[str, Any]:
        """GET /connectors/{name}/offsets."""
        if issubclass(self._plugin(name), SourceConnector):
            pairs = self._shared.offsets.look(lambda state: state.of(name))
        else:
            pairs = [
                ({_TOPIC: topic, _PARTITION: partition}, {_OFFSET: offset})
                for (topic, partition), offset in sorted(self._committed(name).items())
            ]
        return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in pairs]}

    def alter(self, name: str, pairs: Pairs) -> dict[str, str]:
        """PATCH /connectors/{name}/offsets. Raises `RequestRefusedError` 400 for those that nothing can go on after."""
        self._require_stopped(name, "altered")
        return self._set(name, pairs, "altered")

    def reset(self, name: str) -> dict[str, str]:
        """DELETE /connectors/{name}/offsets."""
        self._require_stopped(name, "reset")
        found = self.offsets(name)["offsets"]
        return self._set(name, [(one["partition"], None) for one in found], "reset")

    def _set(self, name: str, pairs: Pairs, verb: str) -> dict[str, str]:
        plugin = self._plugin(name)
        if issubclass(plugin, SourceConnector):
            asked = self._checked(lambda config: plugin.alter_offsets(config, pairs), name)
            self._fence(name)
            try:
                rows = [offset_record(name, partition, offset) for partition, offset in pairs]
            except (TypeError, ValueError) as error:
                raise RequestRefusedError(400, f"An offset has no form in JSON: {error}") from None
            self._shared.offsets.append(rows)
        else:
            assert issubclass(plugin, SinkConnector)
            wanted = sink_offsets(pairs)
            asked = self._checked(lambda config: plugin.alter_offsets(config, wanted), name)
            self._commit(name, wanted)
        if asked:
            return {"message": f"The offsets for this connector have been {verb} successfully"}
        return {
            "message": f"The Connect framework-managed offsets for this connector have been {verb} successfully."
            f" However, if this connector manages offsets externally, they will need to be manually {verb} in the"
            " system that the connector uses."
        }

    def _checked(self, call: Callable[[Mapping[str, str]], bool], name: str) -> bool:
        try:
            return call(self._shared.providers.resolved(self._operations.config(name)).config)
        except ConnectError as error:
            raise RequestRefusedError(400, self._shared.providers.secrets.hidden(str(error))) from None

    def _require_stopped(self, name: str, verb: str) -> None:
        """The connector is to be stopped, and its tasks must have ended: they would write their offsets after ours."""
        target = self._shared.configs.look(lambda state: state.require(name) and state.target(name))
        if target is not TargetState.STOPPED:
            raise RequestRefusedError(
                400,
                f"Connectors must be in the STOPPED state before their offsets can be {verb}. This can be done for the"
                f" specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint",
            )
        alive = (RunState.RUNNING, RunState.PAUSED, RunState.RESTARTING)
        running = self._shared.statuses.look(
            lambda state: [
                one.task
                for (connector, task), one in state.runs.items()
                if connector == name and task is not None and one.state in alive
            ]
        )
        if running:
            raise RequestRefusedError(
                409,
                f"Tasks {running} of connector {name} have not ended yet: send the request again in a moment.",
            )

    def _fence(self, name: str) -> None:
        """No task that its worker did not stop in time may commit after us (KIP-618)."""
        if self._shared.settings.exactly_once:
            most = int(self._operations.config(name).get("tasks.max", "1"))
            for task in range(min(most, 100)):
                fence(self._shared, name, task)

    def _plugin(self, name: str) -> Any:
        return self._operations.plugin(self._operations.config(name).get("connector.class", ""))

    # --- groups -------------------------------------------------------------------------------------------------

    def _committed(self, name: str) -> dict[tuple[str, int], int]:
        return committed_offsets(self._shared.lake, self._shared.settings.consumer_group(name))

    def _commit(self, name: str, wanted: Mapping[tuple[str, int], int | None]) -> None:
        known = self._committed(name)
        kept = {one: offset for one, offset in wanted.items() if offset is not None}
        gone = [one for one, offset in wanted.items() if offset is None and one in known]
        try:
            set_offsets(self._shared.lake, self._shared.settings.consumer_group(name), kept, gone)
        except TidelogError as error:
            raise RequestRefusedError(
                400,
                f"Failed to set consumer group offsets for connector {name}, either because its tasks haven't stopped"
                f" completely yet or an offset is wrong: {error}",
            ) from None


def sink_offsets(pairs: Pairs) -> dict[tuple[str, int], int | None]:
    """A sink's offsets by topic and partition. Raises `RequestRefusedError` 400 with Connect's sentences."""
    offsets: dict[tuple[str, int], int | None] = {}
    for partition, offset in pairs:
        topic, number = partition.get(_TOPIC), partition.get(_PARTITION)
        if not isinstance(topic, str) or _whole(number) is None:
            raise RequestRefusedError(
                400,
                f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and '{_PARTITION}'.",
            )
        wanted = None if offset is None else _whole(offset.get(_OFFSET))
        if offset is not None and wanted is None:
            raise RequestRefusedError(
                400, f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'."
            )
        offsets[topic, _whole(number) or 0] = wanted
    return offsets


def _whole(value: Any) -> int | None:
    """A number of 0 and more, also as text, as Connect takes it."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None
