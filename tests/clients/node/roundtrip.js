// Sends records by every codec and reads them back as a member of a group; see tests/support/kafka_clients.py.

const { CompressionTypes, Kafka, logLevel } = require("kafkajs");

const [address, topic, group, codecs, number, transactionalId] = process.argv.slice(2);
const count = Number(number);
const kafka = new Kafka({ brokers: [address], logLevel: logLevel.ERROR });

const messages = (prefix) =>
  [...Array(count).keys()].map((i) => ({
    key: `${prefix}-${i}`,
    value: i % 7 === 0 ? null : `value ${i}`,
    headers: { number: String(i) },
    timestamp: String(1_700_000_000_000 + i),
  }));

const produce = async (codec) => {
  const compression = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP }[codec];
  const idempotent = Boolean(transactionalId);
  const producer = kafka.producer(idempotent ? { idempotent, transactionalId, maxInFlightRequests: 1 } : {});
  await producer.connect();
  if (transactionalId) {
    const aborted = await producer.transaction();
    await aborted.send({ topic, messages: messages("aborted"), compression });
    await aborted.abort();
    const committed = await producer.transaction();
    await committed.send({ topic, messages: messages(codec), compression });
    await committed.commit();
  } else {
    await producer.send({ topic, messages: messages(codec), compression });
  }
  await producer.disconnect();
};

const consume = async (wanted) => {
  const consumer = kafka.consumer({ groupId: group });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  let seen = 0;
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        const { offset, key, value, headers, timestamp } = message;
        console.log(
          JSON.stringify({
            partition,
            offset: Number(offset),
            key: key.toString(),
            value: value === null ? null : value.toString(),
            number: headers.number.toString(),
            timestamp: Number(timestamp),
          }),
        );
        await consumer.commitOffsets([{ topic, partition, offset: String(BigInt(offset) + 1n) }]);
        seen += 1;
        if (seen === wanted) resolve();
      },
    });
  });
  await consumer.disconnect();
};

const main = async () => {
  for (const codec of codecs.split(",")) await produce(codec);
  await consume(codecs.split(",").length * count);
};

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
