"""Transactions on S3: commit, abort, fencing, lost answers, roll forward."""

from support.on_s3 import suite

globals().update(suite("test_transactions"))
