"""The cases of `make bench-peers` in their order, and what is demanded: tidelog's figures against Kafka's."""

from measures import Demand

# Each is a module case_<name>: TITLE for people, and run(Bench) for what it measures.
CASES = (
    "spark_write", "spark_read", "spark_stream", "spark_aggregate", "spark_latency", "produce", "consume",
    "client_latency", "writers", "catch_up", "disk", "compaction", "open", "growth", "broker_produce", "broker_consume",
    "broker_catch_up", "broker_latency", "broker_spark_latency", "broker_writers", "broker_core_produce",
    "broker_core_disk", "broker_core_consume", "broker_core_single", "broker_core_processes", "broker_replicas",
    "broker_groups", "streams_word_count",
)  # fmt: skip
# They start a Kafka of their own, and none runs beside it.
ALONE = ("broker_core_produce", "broker_core_disk", "broker_core_consume", "broker_core_single",
         "broker_core_processes", "broker_replicas", "broker_groups")  # fmt: skip

_SPEED, _SIZE = "throughput", "bytes per record"
_FLIGHTS = "bytes on disk, flights"
_COST = "processor time"


def _as_cheap(case: str, what: str, times: float) -> Demand:
    """A record costs tidelog at most Kafka's processor time divided by `times`."""
    return Demand(case, _COST, f"tidelog {what}", f"kafka {what}",
                  f"{times:g} times as many records as Kafka for the same processor time",
                  at_most=round(1 / times, 2))  # fmt: skip


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
    *(_as_cheap("broker core produce", f"{records} {codec} {window}", times)
      for records, codec, times in (("1,000", "none", 1.1), ("1,000", "lz4", 1.0), ("100", "none", 0.9),
                                    ("100", "lz4", 0.9))
      for window in ("w2", "w4")),
    _as_cheap("broker core consume", "hot", 1.6),
    _as_cheap("broker core consume", "cold", 0.6),
    Demand("broker core single records", "closed loop", "tidelog", "kafka",
           "0.6 times as many records as Kafka for the same processor time", at_most=round(1 / 0.6, 2)),
    Demand("broker core single records", "4,000/s acks p50", "tidelog", "",
           "at most 5 ms", at_most=5),
    Demand("broker core single records", "4,000/s cores", "tidelog", "",
           "at most 0.4 of a core", at_most=0.4),
    Demand("broker core single records", "200/s read p50", "tidelog", "kafka",
           "at most twice Kafka's", at_most=2),
    Demand("broker core single records", "200/s cores", "tidelog", "",
           "at most 0.15 of a core", at_most=0.15),
    *(Demand("broker core processes", metric, f"tidelog {processes} processes", "tidelog",
             f"{least:g} times as many records as one process for the same processor time",
             at_most=round(1 / least, 2))
      for metric in ("1,000 a batch", "100 a batch", "single records")
      for processes, least in ((2, 0.85), (4, 0.8), (8, 0.75))),
    Demand("broker core processes", "idle", "tidelog 8 processes", "",
           "at most 0.05 of a core", at_most=0.05),
    Demand("broker groups", "join", "tidelog", "kafka",
           "all are at their targets in 0.3 of Kafka's time", at_most=0.3),
    Demand("broker groups", "longest gap by p99", "tidelog", "",
           "a member that stays notices nothing: its longest gap is 1.2 times its p99", at_most=1.2),
    Demand("broker groups", "idle members", "tidelog", "",
           "at most 0.3 of a core for a thousand", at_most=0.3),
    Demand("broker groups", "idle members' entries", "tidelog", "",
           "no entry", at_most=0),
    Demand("streams word count", _SPEED, "tidelog", "kafka",
           "as fast as Kafka Streams at the same broker", at_least=1),
)
