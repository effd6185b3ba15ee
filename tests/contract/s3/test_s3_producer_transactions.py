"""Transactions of producers and of copiers on S3."""

from support.on_s3 import suite

globals().update(suite("test_producer_transactions", "test_a_copier_commits_what_it_read_with_what_it_wrote"))
