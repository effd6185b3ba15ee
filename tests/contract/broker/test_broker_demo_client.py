"""The demo's Kafka consumer at a broker: it ends with the last record, and not with its patience."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from support.brokers import running_broker

from tidelog.broker.base.settings import GroupSettings
from tidelog.cli.demo import kafka_client
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake


def test_the_demos_consumer_ends_with_the_last_record(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_client, "_PATIENCE_S", 90.0)
    quick = GroupSettings(initial_rebalance_delay_ms=0)
    with running_broker(lake, groups=quick) as address, ThreadPoolExecutor(1) as thread:
        found = thread.submit(kafka_client.consume_all, address, "t", "g").result(60)
    assert sorted(value for _, _, value in found) == [bytes([letter]) for letter in b"abcdefgh"]
    committed = {place[1]: one.offset for place, one in GroupLog(lake).offsets("g").items()}
    assert committed == dict.fromkeys(range(4), 2)
