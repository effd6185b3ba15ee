"""Maintenance beside writers on S3."""

from support.on_s3 import suite

globals().update(suite("test_retention_races", "test_for_any_history_merging_changes_no_record_and_no_offset"))
