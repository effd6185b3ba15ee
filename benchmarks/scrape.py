"""What a scrape of a lake's metrics takes: 1,000 topics of 10 partitions, 20 groups; each scrape looks at all again."""

import time
from pathlib import Path
from urllib.request import urlopen

from figures import Row, percentile
from plan import Plan

from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.operations.snapshots import SnapshotReader
from tidelog.server.process.lake_metrics import LakeMetrics
from tidelog.server.process.metrics_listener import MetricsListener

_SCRAPES = 10
_MOST_S = 1.0


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


def run(plan: Plan) -> list[Row]:
    """Scrape a lake's metrics by HTTP as Prometheus does: once cold, then again and again."""
    folder = plan.work / "scraped"
    topics, partitions = 1_000, 10
    filled(folder, topics, partitions, 20)
    with (
        Lake(folder) as lake,
        SnapshotReader(lake) as reader,
        MetricsListener(("127.0.0.1", 0), LakeMetrics(lake, reader).read) as listener,
    ):
        url = f"http://127.0.0.1:{listener.address[1]}/metrics"
        first_s, size = scraped(url)
        began_s = time.process_time()
        warm = [scraped(url)[0] for _ in range(_SCRAPES)]
        processor_s = (time.process_time() - began_s) / _SCRAPES
    typical = percentile(warm, 50)
    return [
        Row(
            f"a scrape of {topics * partitions:,} partitions, warm, p50",
            f"≤ {_MOST_S:g} s",
            f"{typical:.2f} s, {size / 1e6:.1f} MB (the first {first_s:.2f} s)",
            typical <= _MOST_S,
            {"seconds": warm, "first_s": first_s, "processor_s": processor_s, "bytes": size},
        )
    ]
