"""The command line's groups on S3."""

from support.on_s3 import suite

globals().update(suite("test_cli_groups"))
