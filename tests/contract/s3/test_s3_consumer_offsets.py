"""Consumers' offsets on S3: commits, seeks, times."""

from support.on_s3 import suite

globals().update(suite("test_consumer_offsets"))
