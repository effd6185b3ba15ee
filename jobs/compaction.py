"""Keep the newest record of each key in compacted topics (`cleanup.policy=compact`).

`spark-submit jobs/compaction.py --lake s3://bucket/lake [--topic NAME | --pattern REGEX] [--every 5m] [--dry-run]`
"""

import sys

from tidelog.commands.maintain_options import MaintenancePart
from tidelog.jobs.maintenance_job import maintenance_job

main = maintenance_job("compaction", __doc__.partition("\n")[0], [MaintenancePart.COMPACT])

if __name__ == "__main__":
    sys.exit(main())
