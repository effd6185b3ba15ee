"""Round trips of the newest clients and of old ones, each also in transactions where it has them."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from compat.suite import FAILED, PASSED, SKIPPED, Outcome
from support.brokers import running_broker
from support.kafka_clients import NEWEST, OLD, KafkaClient, expected, install, round_trip

from tidelog.broker.base.settings import GroupSettings
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

SUITE = "clients"
_RECORDS = 300


def outcomes(work: Path, only: str = "") -> Iterator[Outcome]:
    """Run them, one after another. `only`: a part of a name."""
    for client in (*NEWEST, *OLD):
        for transactional in (False, True) if client.transactions else (False,):
            name = f"{client}{' in transactions' if transactional else ''}"
            if only not in name:
                continue
            if shutil.which(client.program) is None:
                yield Outcome(SUITE, name, SKIPPED, 0.0, f"'{client.program}' is not there")
                continue
            began, state, words = time.monotonic(), PASSED, ""
            try:
                install(client)
                _round_trip(client, work / name.replace(" ", "-"), "tx" if transactional else "")
            except (AssertionError, RuntimeError) as error:
                state, words = FAILED, " ".join(str(error).split())[:600]
            yield Outcome(SUITE, name, state, time.monotonic() - began, words)


def _round_trip(client: KafkaClient, folder: Path, transactional_id: str) -> None:
    with Lake(str(folder)) as lake:
        lake.create_topic("t", 3)
        with running_broker(lake, groups=GroupSettings(initial_rebalance_delay_ms=0)) as address:
            found = round_trip(client, address, "t", "g", _RECORDS, transactional_id)
        committed = {place[1]: offset.offset for place, offset in GroupLog(lake).offsets("g").items()}
        assert committed == {p: end for p, (_, end) in lake.offsets("t").items()}, f"it committed {committed}"
    seen = {one["key"]: (one["value"], one["number"], one["timestamp"]) for one in found}
    assert seen == expected(client, _RECORDS), "it read other records than it sent"
    assert len(seen) == len(found), "it read a record twice"
