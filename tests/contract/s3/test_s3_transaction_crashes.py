"""Transactions on S3 whose producer dies, and its successors."""

from support.on_s3 import suite

globals().update(
    suite(
        "test_transaction_crashes",
        "test_a_crash_between_any_two_calls_leaves_all_or_nothing",
        "test_two_producers_with_one_id_in_any_order",
        "test_a_commit_and_an_abort_that_race",
    )
)
