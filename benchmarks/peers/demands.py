"""The cases of `make bench-peers` in their order, and what is demanded: tidelog's figures against Kafka's."""

from measures import Demand

# Each is a module case_<name>: TITLE for people, and run(Bench) for what it measures.
CASES = (
    "spark_write", "spark_read", "spark_stream", "spark_aggregate", "spark_latency", "produce", "consume",
    "client_latency", "writers", "catch_up", "disk", "compaction", "open", "growth",
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
)
