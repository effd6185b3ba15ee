"""`tidelog broker describe`: how many brokers lead each topic, what it costs them, and since when."""

import json

from support.cli_calls import done, lake_address

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.leases import lease_of, said
from tidelog.cluster.loads import BrokerLoad, TopicLoad
from tidelog.cluster.model import LeadersChange, RegisteredBroker, TopicLeaders
from tidelog.log.lake import Lake

SINCE_MS = 1_795_000_000_000


def test_topics_are_described_with_the_cluster():
    address = lake_address()
    with Lake(address) as lake:
        log = ClusterLog(lake)
        for number in (1, 2):
            broker = log.register(RegisteredBroker(number, f"r{number}"), any_id=False)
            lease = lease_of(lake.storage, broker)
            lease.says = said(
                broker, BrokerLoad(0.5, (TopicLoad("a", "busy", 3, 0.4), TopicLoad("b", "calm", 3, 0.05)))
            )
            lease.renew()
        log.lead("r1", [LeadersChange(None, TopicLeaders("a", "busy", 2, SINCE_MS))])
        shown = done("broker", "describe", "--lake", address).stdout
        described = json.loads(done("broker", "describe", "--lake", address, "--format", "json").stdout)
        one = json.loads(done("broker", "describe", "1", "--lake", address, "--format", "json").stdout)
    rows = [line.split() for line in shown.splitlines()]
    assert ["TOPIC", "LEADERS", "LOAD", "SINCE"] in rows
    assert ["busy", "2", "0.80", "2026-11-18", "11:06:40", "UTC"] in rows
    assert ["calm", "1", "0.10", "-"] in rows
    assert described["topics"] == [
        {"name": "busy", "leaders": 2, "load": 0.8, "since_ms": SINCE_MS},
        {"name": "calm", "leaders": 1, "load": 0.1, "since_ms": None},
    ]
    assert one["topics"] == []
