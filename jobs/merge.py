"""Make large segments of many small ones.

`spark-submit jobs/merge.py --lake s3://bucket/lake [--topic NAME | --pattern REGEX] [--every 5m] [--dry-run]`
"""

import sys

from tidelog.commands.maintain_options import MaintenancePart
from tidelog.jobs.maintenance_job import maintenance_job

main = maintenance_job("merge", __doc__.partition("\n")[0], [MaintenancePart.MERGE])

if __name__ == "__main__":
    sys.exit(main())
