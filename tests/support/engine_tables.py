"""Every kind of table that tidelog has, for other engines to read and to try to write to."""

from collections.abc import Iterable

from support.logs import values

import tidelog
from tidelog.log.delta import layout
from tidelog.log.lake import Lake

TABLES = ["orders", layout.OFFSETS_TABLE, layout.TRANSACTIONS_TABLE]


def fill_tables(lake: Lake, *segments: Iterable[str]) -> None:
    """Topic `orders` of two partitions, its records in these segments and one of a transaction; a group's offsets."""
    lake.create_topic("orders", partitions=2, config={"log.checkpoint.interval": "10"})
    for segment in segments:
        texts = list(segment)
        lake.topic("orders").append(values(*texts, partition=[0] * len(texts)))
    producer = tidelog.Producer({"lake": lake, "transactional.id": "shop"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", value="in a transaction", partition=1)
    producer.commit_transaction()
    consumer = tidelog.Consumer({"lake": lake, "group.id": "billing"})
    for offset in (1, 2):
        consumer.commit(offsets=[tidelog.TopicPartition("orders", 0, offset)], asynchronous=False)
    consumer.close()
