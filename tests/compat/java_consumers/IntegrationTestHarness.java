package kafka.api;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;

/**
 * Stands before Kafka's class of this name, from which its consumers' integration tests inherit: the brokers are those
 * of the system property `bootstrap`, and nothing is started. Each test begins without topics and groups.
 *
 * The names and types of methods are those that Scala's compiler gives, as far as these tests call them.
 */
public abstract class IntegrationTestHarness extends kafka.server.QuorumTestHarness {
    private static final String BOOTSTRAP = System.getProperty("bootstrap");
    private final Properties producerConfig = new Properties();
    private final Properties consumerConfig = new Properties();
    private final Properties adminClientConfig = new Properties();
    private final Properties serverConfig = new Properties();
    private final List<AutoCloseable> clients = new ArrayList<>();
    private String protocol = "classic";

    public abstract int brokerCount();

    @BeforeAll
    public static void setUpClass() {}

    @AfterAll
    public static void tearDownClass() {}

    public Properties producerConfig() { return producerConfig; }

    public Properties consumerConfig() { return consumerConfig; }

    public Properties adminClientConfig() { return adminClientConfig; }

    public Properties serverConfig() { return serverConfig; }

    public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }

    public ListenerName listenerName() { return ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT); }

    public ListenerName interBrokerListenerName() { return listenerName(); }

    public void modifyConfigs(scala.collection.Seq<Properties> configs) {}

    @Override
    public scala.Option<GroupProtocol> maybeGroupProtocolSpecified() {
        return scala.Option.apply(GroupProtocol.of(protocol));
    }

    @Override
    public GroupProtocol groupProtocolFromTestParameters() { return GroupProtocol.of(protocol); }

    @BeforeEach
    @Override
    public void setUp(TestInfo test) {
        protocol = test.getDisplayName().toLowerCase(Locale.ROOT).contains("groupprotocol=consumer") ? "consumer" : "classic";
        for (Properties config : List.of(producerConfig, consumerConfig, adminClientConfig)) {
            config.put("bootstrap.servers", BOOTSTRAP);
        }
        producerConfig.putIfAbsent("acks", "-1");
        producerConfig.putIfAbsent("key.serializer", ByteArraySerializer.class.getName());
        producerConfig.putIfAbsent("value.serializer", ByteArraySerializer.class.getName());
        consumerConfig.putIfAbsent("auto.offset.reset", "earliest");
        consumerConfig.putIfAbsent("group.id", "group");
        consumerConfig.putIfAbsent("key.deserializer", ByteArrayDeserializer.class.getName());
        consumerConfig.putIfAbsent("value.deserializer", ByteArrayDeserializer.class.getName());
        consumerConfig.putIfAbsent("group.protocol", protocol);
        clean();
    }

    @AfterEach
    @Override
    public void tearDown() {
        for (AutoCloseable client : clients) {
            try {
                if (client instanceof Consumer<?, ?> consumer) {
                    consumer.wakeup();
                    consumer.close(Duration.ofSeconds(5));
                } else if (client instanceof KafkaProducer<?, ?> producer) {
                    producer.close(Duration.ZERO);
                } else {
                    ((Admin) client).close(Duration.ZERO);
                }
            } catch (Exception stopped) {
                System.err.println("while it closed: " + stopped);
            }
        }
        clients.clear();
        clean();
    }

    private void clean() {
        try (Admin admin = admin(new Properties())) {
            for (var group : admin.listGroups().all().get()) {
                try {
                    var options = new org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions();
                    admin.removeMembersFromConsumerGroup(group.groupId(), options).all().get();
                } catch (ExecutionException none) {
                    // It has no members of the classic protocol.
                }
                try {
                    admin.deleteConsumerGroups(List.of(group.groupId())).all().get();
                } catch (ExecutionException used) {
                    System.err.println("group " + group.groupId() + " stays: " + used.getCause());
                }
            }
            Set<String> topics = admin.listTopics().names().get();
            admin.deleteTopics(topics).all().get();
        } catch (ExecutionException | InterruptedException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private Admin admin(Properties overrides) {
        Properties all = merged(adminClientConfig, overrides);
        all.put("bootstrap.servers", BOOTSTRAP);
        return Admin.create(all);
    }

    private static Properties merged(Properties base, Properties overrides) {
        Properties all = new Properties();
        all.putAll(base);
        all.putAll(overrides);
        return all;
    }

    private <C extends AutoCloseable> C kept(C client) {
        clients.add(client);
        return client;
    }

    public String bootstrapServers(ListenerName listener) { return BOOTSTRAP; }

    public ListenerName bootstrapServers$default$1() { return listenerName(); }

    public <K, V> KafkaProducer<K, V> createProducer(Serializer<K> keys, Serializer<V> values, Properties overrides) {
        return kept(new KafkaProducer<>(merged(producerConfig, overrides), keys, values));
    }

    public <K, V> ByteArraySerializer createProducer$default$1() { return new ByteArraySerializer(); }

    public <K, V> ByteArraySerializer createProducer$default$2() { return new ByteArraySerializer(); }

    public <K, V> Properties createProducer$default$3() { return new Properties(); }

    public <K, V> Consumer<K, V> createConsumer(
            Deserializer<K> keys, Deserializer<V> values, Properties overrides,
            scala.collection.immutable.List<String> removed) {
        Properties config = merged(consumerConfig, overrides);
        scala.jdk.javaapi.CollectionConverters.asJava(removed).forEach(config::remove);
        return kept(new KafkaConsumer<>(config, keys, values));
    }

    public <K, V> ByteArrayDeserializer createConsumer$default$1() { return new ByteArrayDeserializer(); }

    public <K, V> ByteArrayDeserializer createConsumer$default$2() { return new ByteArrayDeserializer(); }

    public <K, V> Properties createConsumer$default$3() { return new Properties(); }

    public <K, V> scala.collection.immutable.List<String> createConsumer$default$4() {
        return scala.collection.immutable.List$.MODULE$.empty();
    }

    public Admin createAdminClient(ListenerName listener, Properties overrides) { return kept(admin(overrides)); }

    public ListenerName createAdminClient$default$1() { return listenerName(); }

    public Properties createAdminClient$default$2() { return new Properties(); }

    public scala.collection.immutable.Map<Object, Object> createTopic(
            String topic, int partitions, int replicas, Properties config, ListenerName listener, Properties client) {
        NewTopic asked = new NewTopic(topic, partitions, (short) 1);
        java.util.Map<String, String> configs = new java.util.HashMap<>();
        config.forEach((key, value) -> configs.put(key.toString(), value.toString()));
        try (Admin admin = admin(client)) {
            admin.createTopics(List.of(asked.configs(configs))).all().get();
        } catch (ExecutionException | InterruptedException failed) {
            throw new IllegalStateException(failed);
        }
        return scala.collection.immutable.Map$.MODULE$.empty();
    }

    public int createTopic$default$2() { return 1; }

    public int createTopic$default$3() { return 1; }

    public Properties createTopic$default$4() { return new Properties(); }

    public ListenerName createTopic$default$5() { return listenerName(); }

    public Properties createTopic$default$6() { return new Properties(); }

    public void deleteTopic(String topic, ListenerName listener) {
        try (Admin admin = admin(new Properties())) {
            admin.deleteTopics(List.of(topic)).all().get();
        } catch (ExecutionException | InterruptedException failed) {
            throw new IllegalStateException(failed);
        }
    }

    public ListenerName deleteTopic$default$2() { return listenerName(); }
}
