"""What a record costs that is produced where data is on disk, not in memory."""

from itertools import product

from bench import Bench
from case_broker_core_produce import measured
from measures import Measure

TITLE = "Processor time of records that are produced to a disk"
CASE = "broker core disk"
_CLIENTS = 4


def run(bench: Bench) -> list[Measure]:
    """All sizes of batch and codecs, values of 100 B, four clients. tidelog fsyncs what it acknowledges."""
    shapes = [(records, codec, False, _CLIENTS) for records, codec in product((1_000, 100, 10, 1), ("none", "lz4"))]
    folder = bench.work / "data"
    folder.mkdir()
    return measured(CASE, bench, folder, shapes)
