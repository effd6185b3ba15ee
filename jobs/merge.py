"""Make large segments of many small ones.

`spark-submit jobs/merge.py --lake s3://bucket/lake [--topic NAME | --pattern REGEX] [--every 5m] [--dry-run]`
"""

import sys
from functools import partial

from tidelog.commands.failures import exit_code_of
from tidelog.commands.maintain_options import Part
from tidelog.jobs.maintenance_job import maintenance_job

app = maintenance_job("merge", __doc__.partition("\n")[0], [Part.MERGE])
main = partial(exit_code_of, app, "merge")

if __name__ == "__main__":
    sys.exit(main())
