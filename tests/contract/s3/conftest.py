"""Which suites of the unit layer `make test` runs on S3: some of each kind. `make s3`, which sets TIDELOG_S3, runs all.

That each entrance reaches S3 is tested by test_s3_entrances.py, and what a log needs of a store by the storage's
contract: a suite on S3 shows no more than that nothing else is relied on.
"""

import os

_LONG = (
    "test_s3_admin.py",
    "test_s3_cli_groups.py",
    "test_s3_cli_topics.py",
    "test_s3_consumer.py",
    "test_s3_consumer_offsets.py",
    "test_s3_maintenance.py",
    "test_s3_mirror.py",
    "test_s3_producer_transactions.py",
    "test_s3_topic_lives.py",
)
collect_ignore = [] if "TIDELOG_S3" in os.environ else [*_LONG]
