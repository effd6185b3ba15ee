"""Kafka Streams, unmodified and exactly once, over a broker: killed and started again, it loses and repeats nothing.

`make compat` joins windows, too.
"""

from pathlib import Path

from support.brokers import running_broker
from support.kafka_clients import ready
from support.kafka_programs import STREAMS
from support.streams_runs import word_count

from tidelog.broker.base.settings import GroupSettings
from tidelog.log.lake import Lake


def test_killed_and_started_again(tmp_path: Path) -> None:
    ready(STREAMS)
    quick = GroupSettings(initial_rebalance_delay_ms=0)
    with Lake(str(tmp_path / "lake")) as lake, running_broker(lake, groups=quick) as address:
        word_count(address, tmp_path, 400, 1)
