"""Keep the newest record of each key in compacted topics (`cleanup.policy=compact`).

`spark-submit jobs/compaction.py --lake s3://bucket/lake [--topic NAME | --pattern REGEX] [--every 5m] [--dry-run]`
"""

import sys
from collections.abc import Sequence

from tidelog.commands.maintain_options import Part
from tidelog.jobs.maintenance_job import maintenance_job
from tidelog.jobs.programs import run_job

app = maintenance_job("compaction", __doc__.partition("\n")[0], [Part.COMPACT])


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out the command line; its exit code."""
    return run_job(app, arguments)


if __name__ == "__main__":
    sys.exit(main())
