"""What a scrape of a lake's metrics takes: 1,000 topics of 10 partitions, 20 groups, by HTTP as Prometheus asks.

    .venv/bin/python benchmarks/scrape.py

One line: the first scrape, which opens every topic, and the median of warm ones, each a new look at all of the lake.
On a machine that is busy with other things, look at the processor time.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from urllib.request import urlopen

from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.metrics.lake_metrics import LakeMetrics
from tidelog.metrics.lake_watch import LakeWatch
from tidelog.metrics.serving import MetricsListener


def filled(folder: Path, topics: int, partitions: int, groups: int) -> None:
    """A lake in which each topic has a record in each partition, and groups that have read half of the topics."""
    with Lake(folder) as lake:
        names = [f"topic-{number:04}" for number in range(topics)]
        for name in names:
            lake.create_topic(name, partitions)
            lake.topic(name).append([{"value": "1", "partition": number} for number in range(partitions)])
        positions = LoggedPositions(GroupLog(lake))
        for number in range(groups):
            read = names[number :: 2 * groups]
            positions.publish(f"group-{number}", {name: dict.fromkeys(range(partitions), 0) for name in read})


def scraped(url: str) -> tuple[float, int]:
    """Seconds, and bytes, of one scrape."""
    began_s = time.perf_counter()
    with urlopen(url) as answer:
        size = len(answer.read())
    return time.perf_counter() - began_s, size


def main() -> None:
    """Fill a lake, scrape it, print."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--topics", type=int, default=1_000)
    asked.add_argument("--partitions", type=int, default=10)
    asked.add_argument("--groups", type=int, default=20)
    asked.add_argument("--scrapes", type=int, default=10)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "lake"
        filled(folder, given.topics, given.partitions, given.groups)
        with (
            Lake(folder) as lake,
            LakeWatch(lake) as watch,
            MetricsListener(("127.0.0.1", 0), LakeMetrics(lake, watch)) as listener,
        ):
            url = f"http://127.0.0.1:{listener.address[1]}/metrics"
            first_s, size = scraped(url)
            began_s = time.process_time()
            warm = [scraped(url)[0] for _ in range(given.scrapes)]
            processor_s = (time.process_time() - began_s) / given.scrapes
            total = given.topics * given.partitions
            print(
                f"{total} partitions: first {first_s:.2f} s, warm median {median(warm):.2f} s"
                f" (from {min(warm):.2f} to {max(warm):.2f}), of which {processor_s:.2f} s on a processor,"
                f" {size / 1e6:.1f} MB"
            )


if __name__ == "__main__":
    main()
