"""Keep the newest record of each key in compacted topics (`cleanup.policy=compact`).

`spark-submit jobs/compaction.py --lake s3://bucket/lake [--topic NAME | --pattern REGEX] [--every 5m] [--dry-run]`
"""

import sys
from functools import partial

from tidelog.commands.failures import exit_code_of
from tidelog.commands.maintain_options import Part
from tidelog.jobs.maintenance_job import maintenance_job

app = maintenance_job("compaction", __doc__.partition("\n")[0], [Part.COMPACT])
main = partial(exit_code_of, app, "compaction")

if __name__ == "__main__":
    sys.exit(main())
