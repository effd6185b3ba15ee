"""Purging on S3."""

from support.on_s3 import suite

globals().update(
    suite(
        "test_purge_run",
        "test_many_files",
        "test_two_at_once",
        "test_killed_anywhere_it_loses_nothing_and_the_next_one_finishes",
        "test_what_a_killed_writer_left_unfinished_is_discarded_too",
    )
)
