"""The leader of a topic is killed: how long until a producer's next record is acknowledged."""

import time
from pathlib import Path

import brokers
import confluent_kafka
from figures import Row, percentile, summary
from plan import Plan

import tidelog

_BROKERS = 3
_MOST_S = 3.0
# Acks before each death.
_CALM = 20
_PATIENCE_S = 60.0


def run(plan: Plan) -> list[Row]:
    """Again and again, with a new broker in place of the dead one; the producer is Kafka's own, and goes on."""
    folder = plan.work / "broker-death"
    with tidelog.Lake(str(folder)) as lake:
        lake.create_topic("t", partitions=1)
    with brokers.running(folder, _BROKERS) as cluster:
        addresses = ",".join(broker.address for broker in cluster)
        gaps_s = _gaps_s(folder, list(cluster), addresses, plan.rounds)
    slowest = max(gaps_s)
    return [
        Row(
            f"kill -9 of a topic's leader, one of {_BROKERS} brokers: until the next ack, slowest of {len(gaps_s)}",
            "≤ 3 s",
            f"{slowest:.2f} s (p50 {percentile(gaps_s, 50):.2f})",
            slowest <= _MOST_S,
            {"s": summary(gaps_s)},
        )
    ]


def _gaps_s(folder: Path, cluster: list[brokers.BrokerProcess], addresses: str, deaths: int) -> list[float]:
    gaps_s: list[float] = []
    born: list[brokers.BrokerProcess] = []
    try:
        for _ in range(deaths):
            # Any broker takes records, so that a producer that has met one before the last death stays there.
            producer = brokers.producer(addresses, linger_ms=0, enable_idempotence=True)
            for _ in range(_CALM):
                _ack(producer)
            leader = producer.list_topics("t", 10).topics["t"].partitions[0].leader
            dead = next(broker for broker in cluster if broker.id == leader)
            began = time.monotonic()
            dead.kill()
            _ack(producer)
            gaps_s.append(time.monotonic() - began)
            cluster.remove(dead)
            born.append(brokers.BrokerProcess(folder))
            cluster.append(born[-1].ready())
            addresses = ",".join(broker.address for broker in cluster)
    finally:
        for broker in born:
            broker.stop()
    return gaps_s


def _ack(producer: confluent_kafka.Producer) -> None:
    """One record, until it is acknowledged."""
    found: list[object] = []
    producer.produce("t", b"x", on_delivery=lambda error, _: found.append(error))
    until = time.monotonic() + _PATIENCE_S
    while not found and time.monotonic() < until:
        producer.poll(0.1)
    if found != [None]:
        raise RuntimeError(f"a record was not acknowledged: {found}")
