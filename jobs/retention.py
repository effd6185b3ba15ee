"""Let go what `retention.ms` and `retention.bytes` allow, and cut what delete-records cut through.

`spark-submit jobs/retention.py --lake s3://bucket/lake [--topic NAME | --pattern REGEX] [--every 5m] [--dry-run]`
"""

import sys
from functools import partial

from tidelog.commands.failures import exit_code_of
from tidelog.commands.maintain_options import Part
from tidelog.jobs.maintenance_job import maintenance_job

app = maintenance_job("retention", __doc__.partition("\n")[0], [Part.RETENTION])
main = partial(exit_code_of, app, "retention")

if __name__ == "__main__":
    sys.exit(main())
