"""The Spark application of a Delta sink: `spark-submit delta_program.py FILE`, with the job in the file.

Structured Streaming writes a batch's offsets into the checkpoint, then the batch is merged with its number as the
tables' transaction version: a batch that is run again after a kill has the same records, and is left out where its
commit is there.
"""

import logging
import sys
import threading
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from tidelog.connect.connectors.spark.delta_merge import DeltaTxn, TableRule, write_records
from tidelog.connect.connectors.spark.delta_sink import SPARK_DELTA_KEYS, DeltaJob
from tidelog.connect.runtime.offsets import committed_offsets, set_offsets
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.typed_values import listed
from tidelog.log.lake import Lake
from tidelog.sources.catalog import Catalog
from tidelog.sources.offset_json import dumps
from tidelog.sources.options import parse_stream
from tidelog.spark.s3a import hadoop_address
from tidelog.spark.session import session

_LOG: Final = logging.getLogger("tidelog.connect")
_APP: Final = "tidelog-connect"
_FOLDER: Final = "__connect"
# Of what a query failed with: the cause is said last.
_SAID: Final = 3_000


def source_options(lake: Lake, job: DeltaJob, most: int) -> dict[str, str]:
    """The source's options. A new checkpoint begins where the group is, else as auto.offset.reset says."""
    topics, pattern = job.config.get("topics", ""), job.config.get("topics.regex", "")
    options = {
        **lake.options,
        "lake": lake.uri,
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": str(most),
        "startingOffsets": job.config.get("consumer.override.auto.offset.reset", "earliest"),
    }
    if pattern:
        options["subscribePattern"] = f"^({pattern})$"
    else:
        options["subscribe"] = ",".join(listed(topics))
    committed = committed_offsets(lake, job.group_id)
    if committed:
        parsed = parse_stream(options, None)
        catalog = Catalog(lake, parsed)
        catalog.refresh(required=True)
        starts = catalog.resolved(parsed.starting, "start", streaming=True)
        starts |= {one: committed[one] for one in starts if one in committed}
        options["startingOffsets"] = dumps(starts)
    return options


def run(job: DeltaJob) -> None:
    """Merge batch after batch, until the query fails or the process is ended. Raises `StreamingQueryException`."""
    values = SPARK_DELTA_KEYS.parse(job.config)
    rule, began, own = TableRule.of(values), threading.Event(), list[str]()
    spark = session(f"tidelog connect {job.connector}")
    with Lake(job.lake, create=False, options=job.options) as lake:
        options = source_options(lake, job, values["flush.size"])
        checkpoint = values["checkpoint.location"] or f"{lake.uri}/{_FOLDER}/{job.connector}"

        def write(batch: DataFrame, number: int) -> None:
            began.wait()
            txn = DeltaTxn(f"{_APP}/{job.connector}/{own[0]}", number)
            behind = write_records(batch, job.text, rule, txn)
            try:
                set_offsets(lake, job.group_id, behind)  # to be seen; those that count are in the checkpoint
            except TidelogError as error:
                _LOG.warning("The group's offsets were not set: group=%s error=%s", job.group_id, error)

        stream = spark.readStream.format("tidelog").options(**options).load()
        writer = stream.writeStream.queryName(job.connector).foreachBatch(write)
        writer = writer.option("checkpointLocation", hadoop_address(checkpoint))
        query = writer.trigger(processingTime=f"{values['rotate.interval.ms']} milliseconds").start()
        own.append(query.id)  # the checkpoint's: another one begins with batch 0 again
        began.set()
        query.awaitTermination()


def main(path: str) -> None:
    """Run the job of a file."""
    try:
        run(DeltaJob.read(path))
    except StreamingQueryException as error:
        raise SystemExit(str(error)[-_SAID:]) from None


if __name__ == "__main__":
    main(sys.argv[1])
