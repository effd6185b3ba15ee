"""Let go what `retention.ms` and `retention.bytes` allow, and cut what delete-records cut through.

`spark-submit jobs/retention.py --lake s3://bucket/lake [--topic NAME | --pattern REGEX] [--every 5m] [--dry-run]`
"""

import sys

from tidelog.commands.maintain_options import MaintenancePart
from tidelog.jobs.maintenance_job import maintenance_job

main = maintenance_job("retention", __doc__.partition("\n")[0], [MaintenancePart.RETENTION])

if __name__ == "__main__":
    sys.exit(main())
