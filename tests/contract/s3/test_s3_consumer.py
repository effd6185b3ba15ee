"""Consumers on S3."""

from support.on_s3 import suite

globals().update(
    suite("test_consumer", "test_a_consumer_reads_from_other_stores_too", "test_waiting_without_a_watcher_looks_seldom")
)
