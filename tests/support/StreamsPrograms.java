import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

/**
 * Kafka Streams' examples over topics whose keys and values are texts.
 *
 * Arguments: the program, the brokers' addresses, the application's id, the folder of its state, and settings
 * name=value. It prints its states, one a line, and ends orderly when its input ends or it gets SIGTERM.
 *
 * word-count     lines -> counts: the count of each word so far, 1, 2, 3, ...
 * sensor-join    left, right -> joined: values of one key that are at most 10 s apart, as LEFT/RIGHT
 * page-views     views (user, page), profiles (user, region) -> regions: views of each region by windows of 10 s,
 *                keyed REGION@START_MS
 * sessions       events -> sessions: events of each key by sessions of 5 s, keyed KEY@START_MS/END_MS
 */
public class StreamsPrograms {
    // Records of a window may come as late as a test likes.
    private static final Duration GRACE = Duration.ofDays(1);

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[1]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[2]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Path.of(args[3]).toString());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        // Each update of a table is a record: what comes out can be compared record by record.
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        for (String setting : Arrays.copyOfRange(args, 4, args.length)) {
            String[] parts = setting.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        switch (args[0]) {
            case "word-count" -> wordCount(builder);
            case "sensor-join" -> sensorJoin(builder);
            case "page-views" -> pageViews(builder);
            case "sessions" -> sessions(builder);
            default -> throw new IllegalArgumentException(args[0]);
        }
        KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
        CountDownLatch ended = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            System.out.println(now);
            if (now == KafkaStreams.State.ERROR) ended.countDown();
        });
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(30))));
        streams.start();
        Thread input = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {}
            } catch (java.io.IOException e) {
                // It ends all the same.
            }
            ended.countDown();
        });
        input.setDaemon(true);
        input.start();
        ended.await();
        System.exit(streams.state() == KafkaStreams.State.ERROR ? 1 : 0);
    }

    private static void wordCount(StreamsBuilder builder) {
        KStream<String, String> lines = builder.stream("lines");
        lines.flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split("\\W+")))
            .filter((key, word) -> !word.isEmpty())
            .groupBy((key, word) -> word)
            .count()
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to("counts");
    }

    private static void sensorJoin(StreamsBuilder builder) {
        KStream<String, String> left = builder.stream("left"), right = builder.stream("right");
        JoinWindows window = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(10), GRACE);
        left.join(right, (one, other) -> one + "/" + other, window,
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String())).to("joined");
    }

    private static void pageViews(StreamsBuilder builder) {
        KTable<String, String> profiles = builder.table("profiles");
        KStream<String, String> views = builder.stream("views");
        views.join(profiles, (page, region) -> region)
            .map((user, region) -> KeyValue.pair(region, user))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), GRACE))
            .count()
            .toStream((window, count) -> window.key() + "@" + window.window().start())
            .mapValues(count -> Long.toString(count))
            .to("regions");
    }

    private static void sessions(StreamsBuilder builder) {
        KStream<String, String> events = builder.stream("events");
        events.groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(5), GRACE))
            .count()
            .toStream(StreamsPrograms::session)
            .mapValues(count -> count == null ? null : Long.toString(count))
            .to("sessions");
    }

    private static String session(Windowed<String> window, Long count) {
        return window.key() + "@" + window.window().start() + "/" + window.window().end();
    }
}
