import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a group: arguments are the brokers, a topic, and settings as key=value. It prints what it gets. */
public class GroupMember {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("auto.offset.reset", "earliest");
        for (int i = 2; i < args.length; i++) {
            settings.put(args[i].split("=", 2)[0], args[i].split("=", 2)[1]);
        }
        StringDeserializer text = new StringDeserializer();
        Thread main = Thread.currentThread();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                consumer.wakeup();
                try {
                    main.join();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }));
            consumer.subscribe(List.of(args[1]));
            String owned = "";
            while (true) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    System.out.println("got " + record.value());
                }
                TreeSet<Integer> numbers = new TreeSet<>();
                for (TopicPartition one : consumer.assignment()) {
                    numbers.add(one.partition());
                }
                if (!owned.equals(numbers.toString())) {
                    owned = numbers.toString();
                    System.out.println("owns " + owned);
                }
                System.out.flush();
            }
        } catch (org.apache.kafka.common.errors.WakeupException e) {
            System.out.println("closed");
        }
    }
}
