"""Producers on S3."""

from support.on_s3 import suite

globals().update(suite("test_producer"))
