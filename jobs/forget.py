"""Remove every record of given keys from topics, and their bytes from storage.

`spark-submit jobs/forget.py --lake s3://bucket/lake --topic orders --key-file keys.txt [--wait] [--dry-run]`
"""

import sys
from collections.abc import Sequence

import typer

from tidelog.commands.failures import EXIT_CODES
from tidelog.commands.forget_options import (
    ForgetDryRunOption,
    ForgetTopicsOption,
    KeyEncoding,
    KeyEncodingOption,
    KeyFileOption,
    KeysOption,
    WaitOption,
    keys_of,
)
from tidelog.commands.forget_run import forget_keys
from tidelog.commands.options import DebugOption, FormatOption, LakeOption, StoreOption, session
from tidelog.jobs.on_spark.executor import SparkExecutor
from tidelog.jobs.programs import lone_app, run_job
from tidelog.spark.session import session as spark_session


def forget(
    context: typer.Context,
    topics: ForgetTopicsOption,
    keys: KeysOption = None,
    key_file: KeyFileOption = None,
    key_encoding: KeyEncodingOption = KeyEncoding.TEXT,
    dry_run: ForgetDryRunOption = False,
    wait: WaitOption = False,
    lake: LakeOption = None,
    store: StoreOption = None,
    output: FormatOption = None,
    debug: DebugOption = False,
) -> None:
    """Remove every record of given keys from topics, and their bytes from storage; other offsets stay as they are.

    As `tidelog forget`, with Spark tasks that read and write the segments. The exit code is 4 while files wait.
    """
    call = session(context, lake, output, debug, store)
    sought = keys_of(keys, key_file, key_encoding)
    with call.open_lake() as opened:
        executor = SparkExecutor(spark_session("tidelog forget", delta=False), opened.uri, opened.options)
        forget_keys(call, opened, topics, sought, dry_run=dry_run, wait=wait, executor=executor)


app = lone_app(
    "forget",
    forget.__doc__ or "",
    forget,
    "spark-submit jobs/forget.py --lake s3://bucket/lake --topic orders --key customer-7",
    EXIT_CODES,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line; its exit code."""
    return run_job(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
