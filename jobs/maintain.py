"""All of maintenance: retention, compaction, merging, purging of unneeded files, and groups' offsets.

`spark-submit jobs/maintain.py --lake s3://bucket/lake [--topic NAME | --pattern REGEX] [--every 5m] [--dry-run]`
"""

import sys
from functools import partial

from tidelog.commands.failures import exit_code_of
from tidelog.commands.maintain_options import Part
from tidelog.jobs.maintenance_job import maintenance_job

app = maintenance_job("maintain", __doc__.partition("\n")[0], tuple(Part))
main = partial(exit_code_of, app, "maintain")

if __name__ == "__main__":
    sys.exit(main())
