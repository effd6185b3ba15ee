"""How far a group is in each partition of topics. Arguments: address, group, topics."""

import sys

import confluent_kafka

address, group = sys.argv[1:3]
consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": group})
for topic in sys.argv[3:]:
    metadata = consumer.list_topics(topic, timeout=10).topics[topic]
    if metadata.error is not None:
        raise confluent_kafka.KafkaException(metadata.error)
    partitions = [confluent_kafka.TopicPartition(topic, number) for number in metadata.partitions]
    for one in consumer.committed(partitions, timeout=10):
        low, high = consumer.get_watermark_offsets(one, timeout=10, cached=False)
        at = "-" if one.offset == confluent_kafka.OFFSET_INVALID else one.offset
        lag = high - low if one.offset < 0 else high - one.offset
        print(f"{one.topic} [{one.partition}] at {at}, lag {lag}")
consumer.close()
