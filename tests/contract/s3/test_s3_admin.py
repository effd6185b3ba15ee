"""AdminClient on S3: topics, partitions, configuration, offsets."""

from support.on_s3 import suite

globals().update(suite("test_admin"))
