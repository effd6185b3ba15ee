"""Forgetting keys on S3, down to the bytes."""

from support.on_s3 import suite

globals().update(
    suite("test_key_erasure", "test_exactly_the_keys_records_leave", "test_killed_anywhere_it_is_run_again")
)
