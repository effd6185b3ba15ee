"""A run of maintenance on S3: retention, merging, compaction, purging, offsets."""

from support.on_s3 import suite

globals().update(suite("test_retention_maintenance"))
