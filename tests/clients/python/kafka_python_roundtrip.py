"""kafka-python sends records by every codec and reads them back as a member of a group."""

import json
import os
import sys

from kafka import KafkaConsumer, KafkaProducer

address, topic, group, codecs, number = sys.argv[1:6]
count = int(number)
given = dict(line.split("=", 1) for line in os.environ.get("CLIENT_PROPERTIES", "").splitlines())
settings = {"bootstrap_servers": address, **{key.replace(".", "_"): value for key, value in given.items()}}
for codec in codecs.split(","):
    producer = KafkaProducer(**settings, compression_type=None if codec == "none" else codec, acks="all")
    sent = [
        producer.send(
            topic,
            key=f"{codec}-{i}".encode(),
            value=None if i % 7 == 0 else f"value {i}".encode(),
            headers=[("number", str(i).encode())],
            timestamp_ms=1_700_000_000_000 + i,
        )
        for i in range(count)
    ]
    for one in sent:
        one.get(60)
    producer.close()

consumer = KafkaConsumer(topic, **settings, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False)
found = 0
while found < count * len(codecs.split(",")):
    for records in consumer.poll(1000).values():
        for record in records:
            found += 1
            value = None if record.value is None else record.value.decode()
            line = {"partition": record.partition, "offset": record.offset, "key": record.key.decode(), "value": value}
            print(json.dumps(line | {"number": dict(record.headers)["number"].decode(), "timestamp": record.timestamp}))
consumer.commit()
consumer.close()
