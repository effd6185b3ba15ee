"""Consumers on S3 that read what is committed."""

from support.on_s3 import suite

globals().update(suite("test_consumer_transactions"))
