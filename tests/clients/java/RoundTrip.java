// Sends records by every codec and reads them back as a member of a group; see tests/support/kafka_clients.py.

import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class RoundTrip {
    public static void main(String[] args) throws Exception {
        String address = args[0], topic = args[1], group = args[2], transactionalId = args[5];
        String[] codecs = args[3].split(",");
        int count = Integer.parseInt(args[4]);
        for (String codec : codecs) {
            produce(address, topic, codec, count, transactionalId);
        }
        consume(address, topic, group, codecs.length * count);
    }

    static Properties given() throws IOException {
        Properties settings = new Properties();
        String text = System.getenv("CLIENT_PROPERTIES");
        settings.load(new StringReader(text == null ? "" : text));
        return settings;
    }

    static void produce(String address, String topic, String codec, int count, String transactionalId) throws Exception {
        Properties settings = given();
        settings.put("bootstrap.servers", address);
        settings.put("compression.type", codec);
        settings.put("linger.ms", "5");
        boolean transactional = !transactionalId.isEmpty();
        if (transactional) {
            settings.put("transactional.id", transactionalId);
        }
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            if (transactional) {
                producer.initTransactions();
                producer.beginTransaction();
                send(producer, topic, "aborted", count);
                producer.abortTransaction();
                producer.beginTransaction();
            }
            send(producer, topic, codec, count);
            if (transactional) {
                producer.commitTransaction();
            }
        }
    }

    static void send(KafkaProducer<String, String> producer, String topic, String prefix, int count) throws Exception {
        List<Future<?>> sent = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            String value = i % 7 == 0 ? null : "value " + i;
            ProducerRecord<String, String> record =
                    new ProducerRecord<>(topic, null, 1_700_000_000_000L + i, prefix + "-" + i, value);
            record.headers().add("number", Integer.toString(i).getBytes(StandardCharsets.UTF_8));
            sent.add(producer.send(record));
        }
        for (Future<?> one : sent) {
            one.get();
        }
    }

    static void consume(String address, String topic, String group, int count) throws Exception {
        Properties settings = given();
        settings.put("bootstrap.servers", address);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", "read_committed");
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(Collections.singletonList(topic));
            for (int found = 0; found < count; ) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    found++;
                    System.out.println(json(record));
                }
            }
            consumer.commitSync();
        }
    }

    static String json(ConsumerRecord<String, String> record) {
        Header header = record.headers().lastHeader("number");
        String value = record.value() == null ? "null" : "\"" + record.value() + "\"";
        return String.format(
                "{\"partition\":%d,\"offset\":%d,\"key\":\"%s\",\"value\":%s,\"number\":\"%s\",\"timestamp\":%d}",
                record.partition(), record.offset(), record.key(), value,
                new String(header.value(), StandardCharsets.UTF_8), record.timestamp());
    }
}
