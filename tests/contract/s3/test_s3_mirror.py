"""Mirrors between two places on S3."""

from support.on_s3 import suite

globals().update(suite("test_mirror_rounds"))
globals().update(suite("test_mirror_starts", "test_a_start_may_die_between_any_two_steps"))
globals().update(suite("test_mirror_failover"))
