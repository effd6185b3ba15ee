"""Groups of consumers on S3: members, rebalances, callbacks."""

from support.on_s3 import suite

globals().update(suite("test_consumer_groups", "TestMaxPollInterval"))
