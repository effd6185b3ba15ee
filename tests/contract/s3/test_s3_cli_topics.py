"""The command line's topics on S3."""

from support.on_s3 import suite

globals().update(suite("test_cli_topics"))
