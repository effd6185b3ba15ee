"""Kafka Streams, unmodified and exactly once, over a broker: killed and started again, it loses and repeats nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.brokers import running_broker
from support.kafka_clients import ready
from support.kafka_programs import STREAMS
from support.streams_runs import sensor_join, word_count

from tidelog.broker.base.settings import GroupSettings
from tidelog.log.lake import Lake


@pytest.mark.parametrize(("run", "records"), [(word_count, 400), (sensor_join, 300)])
def test_killed_and_started_again(tmp_path: Path, run: Callable[[str, Path, int, int], None], records: int) -> None:
    ready(STREAMS)
    quick = GroupSettings(initial_rebalance_delay_ms=0)
    with Lake(str(tmp_path / "lake")) as lake, running_broker(lake, groups=quick) as address:
        run(address, tmp_path, records, 1)
