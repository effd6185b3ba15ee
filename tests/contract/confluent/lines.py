"""Each line of standard input becomes a record. Arguments: address, topic."""

import sys

from confluent_kafka import Producer

address, topic = sys.argv[1:]
producer = Producer(**{"bootstrap.servers": address})
places = []


def told(err, msg):
    if err:
        print(f"lost: {err}")
    else:
        places.append((msg.topic(), msg.partition(), msg.offset()))


for line in sys.stdin:
    try:
        producer.produce(topic, line.rstrip(), callback=told)
    except BufferError:
        print(f"full: {len(producer)} wait")
    producer.poll(0)
producer.flush()
print(f"{len(places)} delivered, {len(set(places))} places, {len(producer)} wait")
