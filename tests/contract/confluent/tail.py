"""Prints what comes until it has seen enough, with statistics. Arguments: address, group, how many, topics."""

import json
import logging
import sys

from confluent_kafka import Consumer, KafkaException

address, group, most = sys.argv[1:4]
statistics = []
conf = {
    "bootstrap.servers": address,
    "group.id": group,
    "session.timeout.ms": 6000,
    "auto.offset.reset": "earliest",
    "enable.auto.offset.store": False,
    "stats_cb": lambda text: statistics.append(json.loads(text)),
    "statistics.interval.ms": 50,
}
logger = logging.getLogger("tail")
logger.addHandler(logging.StreamHandler())
logger.setLevel(logging.DEBUG)
consumer = Consumer(conf, logger=logger)


def assigned(consumer, partitions):
    print("assigned", sorted((p.topic, p.partition) for p in partitions))


consumer.subscribe(sys.argv[4:], on_assign=assigned)
seen = []
try:
    while len(seen) < int(most) or not statistics or statistics[-1]["rxmsgs"] < int(most):
        msg = consumer.poll(timeout=0.2)
        if msg is None:
            continue
        if msg.error():
            raise KafkaException(msg.error())
        seen.append(f"{msg.topic()} [{msg.partition()}] @ {msg.offset()}: {msg.key()} {msg.value()}")
        consumer.store_offsets(msg)
finally:
    consumer.close()
print("\n".join(sorted(seen)))
last = statistics[-1]
print(last["type"], last["rxmsgs"], last["cgrp"]["state"], sorted(last["topics"]))
