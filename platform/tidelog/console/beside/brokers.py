"""Brokers that serve the lake, and the lakes that it follows."""

from dataclasses import asdict
from typing import Any

from tidelog.console.base.calls import ConsoleCall
from tidelog.operations.mirrors import lag_ms, read_status


def brokers(call: ConsoleCall) -> Any:
    """The brokers that run or drain, by id."""
    return {
        "brokers": [
            {
                "id": broker.id,
                "state": broker.state.value,
                "rack": broker.rack,
                "started_ms": broker.started_ms,
                "listeners": [{"name": at.name, "host": at.host, "port": at.port} for at in broker.listeners],
            }
            for broker in call.console.snapshot().cluster.live
        ]
    }


def mirrors(call: ConsoleCall) -> Any:
    """The mirror that keeps this lake, as it said last: a lake follows one source, and may be copied from Kafka."""
    lake = call.console.lake
    status, follows, now_ms = read_status(lake.storage), lake.follows(), lake.clock.now_ms()
    if status is None:
        return {"follows": None if follows is None else follows.source, "mirrors": []}
    said = asdict(status) | {"lag_ms": lag_ms(status, now_ms), "age_ms": max(0, now_ms - status.now_ms)}
    return {"follows": None if follows is None else follows.source, "mirrors": [said]}
