"""All of maintenance: retention, compaction, merging, purging of unneeded files, and groups' offsets.

`spark-submit jobs/maintain.py --lake s3://bucket/lake [--topic NAME | --pattern REGEX] [--every 5m] [--dry-run]`
"""

import sys

from tidelog.commands.maintain_options import MaintenancePart
from tidelog.jobs.maintenance_job import maintenance_job

main = maintenance_job("maintain", __doc__.partition("\n")[0], tuple(MaintenancePart))

if __name__ == "__main__":
    sys.exit(main())
