// Confluent's own serializer, deserializer and client of registries in Java: sends records, reads all that a topic has,
// and prints each, then what the client finds. See tests/compat/registries.py.

import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

public class AvroValues {
    static final String CARRIER = "{\"name\":\"carrier\",\"type\":\"string\"},";
    static final String DELAY = "{\"name\":\"delay\",\"type\":[\"null\",\"int\"],\"default\":null}";
    static final String GATE = ",{\"name\":\"gate\",\"type\":\"string\",\"default\":\"?\"}";

    static String flight(String more) {
        return "{\"type\":\"record\",\"name\":\"Flight\",\"namespace\":\"air\",\"fields\":[" + CARRIER + DELAY + more + "]}";
    }

    public static void main(String[] words) throws Exception {
        String brokers = words[0], registry = words[1], topic = words[2];
        Schema wide = new Schema.Parser().parse(flight(GATE));
        Map<String, Object> conf = new HashMap<>();
        conf.put("bootstrap.servers", brokers);
        conf.put("schema.registry.url", registry);
        for (String kind : List.of("key", "value")) {
            conf.put(kind + ".serializer", "io.confluent.kafka.serializers.KafkaAvroSerializer");
            conf.put(kind + ".deserializer", "io.confluent.kafka.serializers.KafkaAvroDeserializer");
        }
        try (KafkaProducer<Object, Object> producer = new KafkaProducer<>(conf)) {
            GenericRecord record = new GenericData.Record(wide);
            record.put("carrier", "java");
            record.put("delay", 7);
            record.put("gate", "B1");
            producer.send(new ProducerRecord<>(topic, 0, "k", record)).get();
        }
        try (KafkaConsumer<Object, Object> consumer = new KafkaConsumer<>(conf)) {
            TopicPartition place = new TopicPartition(topic, 0);
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            long end = consumer.endOffsets(List.of(place)).get(place);
            while (consumer.position(place) < end) {
                for (var one : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(one.value());
                }
            }
        }
        client(new CachedSchemaRegistryClient(registry, 100), topic + "-value", "side-" + topic);
    }

    static void client(CachedSchemaRegistryClient client, String subject, String side) throws Exception {
        List<String> found = new ArrayList<>();
        found.add("versions " + client.getAllVersions(subject));
        found.add("latest " + client.getLatestSchemaMetadata(subject).getVersion());
        found.add("narrow " + client.testCompatibility(subject, new AvroSchema(flight(""))));
        String broken = ",{\"name\":\"gate\",\"type\":\"int\"}";
        found.add("broken " + client.testCompatibility(subject, new AvroSchema(flight(broken))));
        try {
            client.register(subject, new AvroSchema(flight(broken)));
        } catch (RestClientException refused) {
            found.add("refused " + refused.getStatus() + " " + refused.getErrorCode());
        }
        found.add("level " + client.updateCompatibility(side, "FULL") + " " + client.getCompatibility(side));
        int id = client.register(side, new AvroSchema("\"string\""));
        found.add("again " + (id == client.getId(side, new AvroSchema("\"string\""))));
        found.add("mode " + client.setMode("READONLY", side) + " " + client.getMode(side));
        client.setMode("READWRITE", side);
        found.add("deleted " + client.deleteSubject(side) + " " + client.deleteSubject(side, true));
        for (String line : found) {
            System.out.println("# " + line);
        }
        client.close();
    }
}
