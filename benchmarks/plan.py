"""How large a run is, and where it works."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Plan:
    """Sizes of the cases. `work` is a folder of their own, gone at the end of the run; `minutes` are the soak's."""

    work: Path
    quick: bool = False
    minutes: float = 10.0

    @property
    def many_files(self) -> int:
        """Live files of the large topic."""
        return 10_000 if self.quick else 100_000

    @property
    def appends(self) -> int:
        """Appends timed to each topic."""
        return 300 if self.quick else 1_500

    @property
    def racing_s(self) -> float:
        """How long the processes append."""
        return 3.0 if self.quick else 12.0

    @property
    def records(self) -> int:
        """Records of the sink's and the source's cases."""
        return 1_000_000 if self.quick else 4_000_000

    @property
    def flights(self) -> int:
        """Records of 19 fields of the cases about values' columns."""
        return 100_000 if self.quick else 2_400_000

    @property
    def rounds(self) -> int:
        """Rounds of cases that compare, after warming up."""
        return 3 if self.quick else 5

    @property
    def many_rounds(self) -> int:
        """Rounds where a ratio is near what it must be."""
        return 3 if self.quick else 9

    @property
    def jvms(self) -> int:
        """Spark processes that such a ratio is measured in, where the JVM's own luck counts."""
        return 1 if self.quick else 3

    @property
    def latencies(self) -> int:
        """Records whose way from append to sink commit is timed."""
        return 40 if self.quick else 200

    @property
    def task_records(self) -> int:
        """Records of the smaller task whose memory is measured; the larger one has eight times as many."""
        return 500_000 if self.quick else 1_000_000

    @property
    def merged_segments(self) -> int:
        """Segments of the topics that are merged and that expire."""
        return 2_000 if self.quick else 10_000
