"""Compaction of keys on S3."""

from support.on_s3 import suite

globals().update(suite("test_compaction_run"))
