"""All of maintenance: retention, compaction, merging, purging of files nobody needs, and groups' offsets.

`spark-submit jobs/maintain.py --lake s3://bucket/lake [--topic NAME | --pattern REGEX] [--every 5m] [--dry-run]`
"""

import sys
from collections.abc import Sequence

from tidelog.commands.maintain_options import ALL
from tidelog.jobs.maintenance_job import maintenance_job
from tidelog.jobs.programs import run_job

app = maintenance_job("maintain", __doc__.partition("\n")[0], ALL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line; its exit code."""
    return run_job(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
