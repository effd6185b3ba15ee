"""Remove every record of given keys from topics, and their bytes from storage.

`spark-submit jobs/forget.py --lake s3://bucket/lake --topic orders --key-file keys.txt [--wait] [--dry-run]`
"""

import sys

from tidelog.commands.declare import program
from tidelog.commands.forget_options import ForgetOptions
from tidelog.commands.forget_run import forget_keys
from tidelog.commands.options import Session
from tidelog.jobs.on_spark.executor import SparkExecutor
from tidelog.log.lake import Lake
from tidelog.spark.session import session as spark_session


def forget(call: Session, asked: ForgetOptions) -> None:
    """Remove every record of given keys from topics, and their bytes from storage; other offsets stay as they are.

    As `tidelog forget`, with Spark tasks that read and write the segments. The exit code is 4 while files wait.
    """
    forget_keys(call, asked, _on_spark)


def _on_spark(lake: Lake) -> SparkExecutor:
    return SparkExecutor(spark_session("tidelog forget", delta=False), lake.uri, lake.options)


main = program(
    "forget",
    forget,
    summary=forget.__doc__ or "",
    example="spark-submit jobs/forget.py --lake s3://bucket/lake --topic orders --key customer-7",
)

if __name__ == "__main__":
    sys.exit(main())
