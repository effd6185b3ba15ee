"""The log of groups on S3: commits, expiry, members' state."""

from support.on_s3 import suite

globals().update(suite("test_group_log"))
