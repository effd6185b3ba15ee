// Copies a topic in transactions until it is killed, as Kafka's own system tests do; see compat/copier.py.

import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Copier {
    static final int ABORTED_EVERY = 5;

    public static void main(String[] args) {
        String address = args[0], from = args[1], to = args[2], group = args[3], transactionalId = args[4];
        Properties reading = new Properties();
        reading.put("bootstrap.servers", address);
        reading.put("group.id", group);
        reading.put("auto.offset.reset", "earliest");
        reading.put("enable.auto.commit", "false");
        reading.put("isolation.level", "read_committed");
        reading.put("session.timeout.ms", "6000");
        reading.put("heartbeat.interval.ms", "1000");
        reading.put("max.poll.records", args[5]);
        Properties writing = new Properties();
        writing.put("bootstrap.servers", address);
        writing.put("transactional.id", transactionalId);
        writing.put("transaction.timeout.ms", "10000");
        try (KafkaConsumer<String, String> consumer =
                        new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
                KafkaProducer<String, String> producer =
                        new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            consumer.subscribe(Collections.singletonList(from));
            for (int number = 1; ; number++) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(1));
                if (records.isEmpty()) {
                    continue;
                }
                try {
                    producer.beginTransaction();
                    copy(consumer, producer, records, to);
                    if (number % ABORTED_EVERY == 0) {
                        throw new KafkaException("as if something went wrong");
                    }
                    producer.commitTransaction();
                    System.out.println("committed " + records.count());
                } catch (ProducerFencedException fenced) {
                    throw fenced;
                } catch (KafkaException e) {
                    System.out.println("aborts: " + e);
                    producer.abortTransaction();
                    goBack(consumer);
                }
            }
        }
    }

    static void copy(
            KafkaConsumer<String, String> consumer,
            KafkaProducer<String, String> producer,
            ConsumerRecords<String, String> records,
            String to) {
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (ConsumerRecord<String, String> record : records) {
            producer.send(new ProducerRecord<>(to, record.partition(), record.key(), record.value()));
            next.put(
                    new TopicPartition(record.topic(), record.partition()),
                    new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
    }

    /** To what is committed: the records of an aborted transaction are to be read again. */
    static void goBack(KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata at = committed.get(partition);
            if (at == null) {
                consumer.seekToBeginning(Collections.singletonList(partition));
            } else {
                consumer.seek(partition, at.offset());
            }
        }
    }
}
