"""Kafka's Connect, unmodified and exactly once, over a broker; `make compat` kills its worker, too."""

from pathlib import Path

from support.brokers import running_broker
from support.connect_runs import files
from support.kafka_clients import ready
from support.kafka_programs import CONNECT

from tidelog.broker.base.settings import GroupSettings
from tidelog.log.lake import Lake


def test_a_file_into_a_topic_into_a_file(tmp_path: Path) -> None:
    ready(CONNECT)
    quick = GroupSettings(initial_rebalance_delay_ms=0)
    with Lake(str(tmp_path / "lake")) as lake, running_broker(lake, groups=quick) as address:
        files(address, tmp_path, 400, 0)
