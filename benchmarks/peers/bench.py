"""What a case is handed: a folder, sizes, a broker and Spark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jars
from figures import interleaved
from pyspark.sql import SparkSession

import tidelog


def notes_of(work: Path) -> Path:
    """The file of what a case that worked in a folder has noted."""
    return work.with_name(f"{work.name}-note.txt")


@dataclass(frozen=True)
class Bench:
    """A case's surroundings: a folder of its own, gone afterwards, and the address of a broker of its own.

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
        return 2 if self.quick else 4

    def note(self, text: str) -> None:
        """Have the results say something beside the figures of the case."""
        notes_of(self.work).write_text(text, encoding="utf-8")

    def interleaved(self, arms: Mapping[str, Callable[[], float]], warmups: int = 1) -> dict[str, list[float]]:
        """Run every arm once a round in turning order (A B, B A, ...): what each returned, warming up left out."""
        return interleaved(arms, self.rounds, warmups)

    def spark(self, name: str) -> SparkSession:
        """A quiet session on all cores with tidelog, Delta and Spark's own Kafka connector."""
        connector = ",".join(str(jar) for jar in jars.fetched(jars.CONNECTOR))
        scratch = self.work / "java"
        scratch.mkdir(exist_ok=True)
        # Kafka's clients unpack their libraries there, and a process that is killed leaves them.
        config = {"spark.jars": connector, "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch}"}
        spark = tidelog.spark.session(name, config=config)
        spark.sparkContext.setLogLevel("ERROR")
        return spark
