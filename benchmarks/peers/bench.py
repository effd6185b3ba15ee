"""What a case is handed: a folder, sizes, a broker and Spark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jars
from figures import interleaved
from pyspark.sql import SparkSession

import tidelog


@dataclass(frozen=True)
class Bench:
    """A case's surroundings: `work` is a folder of its own, gone afterwards; `kafka` the address of a broker of its own.

    `kafka_logs` is the folder that holds the broker's partitions (`<topic>-<partition>/`). Topics are not created by
    use: a case creates them with the partitions it wants.
    """

    work: Path
    kafka: str
    kafka_logs: Path
    quick: bool = False

    @property
    def rounds(self) -> int:
        """Timed rounds, after one of warming up."""
        return 3 if self.quick else 5

    def interleaved(self, arms: Mapping[str, Callable[[], float]], warmups: int = 1) -> dict[str, list[float]]:
        """Run every arm once a round in turning order (A B, B A, ...): what each returned, by arm, warming up left out."""
        return interleaved(arms, self.rounds, warmups)

    def spark(self, name: str) -> SparkSession:
        """A quiet session on all cores with tidelog, Delta and Spark's own Kafka connector."""
        connector = ",".join(str(jar) for jar in jars.fetched(jars.CONNECTOR))
        spark = tidelog.spark.session(name, config={"spark.jars": connector})
        spark.sparkContext.setLogLevel("ERROR")
        return spark
