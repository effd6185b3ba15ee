"""Topics that are altered, deleted and made again, on S3."""

from support.on_s3 import suite

globals().update(suite("test_topic_lives"))
