"""The cases of `make bench-peers` in their order, and what is demanded: tidelog's figures against Kafka's."""

from measures import Demand

# Each is a module case_<name>: TITLE for people, and run(Bench) for what it measures.
CASES = (
    "spark_write", "spark_read", "spark_stream", "spark_aggregate", "spark_latency", "produce", "consume",
    "client_latency", "writers", "catch_up", "disk", "compaction", "open", "growth", "broker_produce", "broker_consume",
    "broker_catch_up", "broker_latency", "broker_spark_latency", "broker_writers", "streams_word_count",
)  # fmt: skip

_SPEED, _SIZE = "throughput", "bytes per record"
_FLIGHTS = "bytes on disk, flights"

# fmt: off
DEMANDS: tuple[Demand, ...] = (
    Demand("spark batch write", _SPEED, "tidelog", "kafka",
           "twice as fast as Spark's Kafka sink", at_least=2),
    Demand("spark batch read", _SPEED, "tidelog", "kafka",
           "four times as fast as Spark's Kafka source", at_least=4),
    Demand("spark streaming read", _SPEED, "tidelog", "kafka",
           "four times as fast as Spark's Kafka source", at_least=4),
    Demand("micro-batch latency", "p50", "tidelog", "kafka",
           "at most that of Spark with Kafka", at_most=1),
    Demand("micro-batch latency", "p50", "tidelog", "kafka fetch.max.wait.ms=10",
           "at most 1.3 times that of Spark with Kafka where its source waits 10 ms", at_most=1.3),
    Demand("catch-up", _SPEED, "tidelog", "kafka",
           "consume is twice as fast as Kafka's consumer", at_least=2),
    Demand("catch-up", _SPEED, "tidelog consume_table", "kafka",
           "consume_table is four times as fast as Kafka's consumer", at_least=4),
    Demand(_FLIGHTS, _SIZE, "tidelog", "kafka",
           "as appended at most what Kafka takes with zstd", at_most=1),
    Demand(_FLIGHTS, _SIZE, "tidelog merged", "kafka",
           "once merged at most 0.8 of what Kafka takes with zstd", at_most=0.8),
    *(Demand("broker produce", _SPEED, f"tidelog {how}", f"kafka {how}",
             "0.9 times as fast as Kafka, which does not fsync", at_least=0.9)
      for how in ("none", "zstd", "Java none", "Java zstd")),
    *(Demand("broker consume", _SPEED, f"tidelog{how}", f"kafka{how}",
             "as fast as Kafka from memory", at_least=1)
      for how in ("", " Java")),
    *(Demand("broker catch-up", _SPEED, f"tidelog{how}", f"kafka{how}",
             "0.8 times as fast as Kafka from segments", at_least=0.8)
      for how in ("", " Java")),
    Demand("broker latency", "p50", "tidelog", "kafka",
           "at most twice Kafka's, which does not fsync", at_most=2),
    Demand("broker small appends", "appends", "tidelog", "kafka flush.messages=1",
           "half as many as Kafka where it fsyncs each", at_least=0.5),
    Demand("streams word count", _SPEED, "tidelog", "kafka",
           "as fast as Kafka Streams at the same broker", at_least=1),
)
