"""AdminClient on S3: groups."""

from support.on_s3 import suite

globals().update(suite("test_admin_groups", "test_listing_many_groups_looks_at_their_table_once"))
