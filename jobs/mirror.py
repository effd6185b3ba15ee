"""The first copy of a lake by Spark: its files are copied by tasks, and the copy follows the lake from then on.

`spark-submit jobs/mirror.py --from s3://bucket/lake --to s3://elsewhere/copy [--topics PATTERN]`
"""

import sys
from typing import Annotated

import typer

from tidelog.commands.declare import program
from tidelog.commands.failures import FAILED
from tidelog.commands.mirror_options import TwoLakes, topic_pattern
from tidelog.commands.options import Session
from tidelog.commands.terminal import print_json, say
from tidelog.jobs.on_spark.copying import SparkCopier
from tidelog.mirror.follower_setup import adopt
from tidelog.mirror.lease import FollowerLease
from tidelog.mirror.mirror import Mirror
from tidelog.server.process.stopping import Stop
from tidelog.spark.session import session as spark_session


def mirror(
    call: Session,
    lakes: TwoLakes,
    topics: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Ship only topics whose whole name a regular expression matches."),
    ] = None,
) -> None:
    """Make a lake the follower of another one, with Spark tasks that copy the files.

    It ends when the follower is the same as the source at one time; `tidelog mirror start` goes on from there. Exit
    code 1 when a table is not shipped.
    """
    wanted = topic_pattern(topics)
    with Stop() as stop, lakes.open_source(call) as source, lakes.open_follower(call) as follower:
        adopt(source, follower)
        with FollowerLease(follower.storage, follower.clock, follower.ids.new()) as lease:
            spark = spark_session("tidelog mirror", delta=False)
            copier = SparkCopier(spark, source, follower)
            copying = Mirror(source, follower, wanted=wanted, lease=lease, copier=copier)
            try:
                while not (copying.round().whole or copying.problems or stop.asked):
                    pass
            finally:
                copying.close()
        status, problems = copying.status(ended=True), copying.problems
    if call.as_json:
        print_json({"entries": status.shipped_entries, "bytes": status.shipped_bytes, "problems": problems})
    else:
        say(f"{status.shipped_entries} entries and {status.shipped_bytes} bytes of files were shipped.")
    for name, why in problems.items():
        say(f"'{name}' is not shipped. {why}", stderr=True)
    if problems:
        raise typer.Exit(FAILED)
    if stop.asked:
        raise typer.Exit(stop.exit_code)


main = program(
    "mirror",
    mirror,
    summary=mirror.__doc__ or "",
    example="spark-submit jobs/mirror.py --from s3://bucket/lake --to s3://elsewhere/copy",
)

if __name__ == "__main__":
    sys.exit(main())
