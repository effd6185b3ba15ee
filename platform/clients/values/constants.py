"""Numbers that clients speak in: logical offsets and kinds of timestamps, with librdkafka's values."""

from typing import Final

OFFSET_BEGINNING: Final = -2
"""The log start offset."""
OFFSET_END: Final = -1
"""The log end offset."""
OFFSET_STORED: Final = -1000
"""The group's committed offset."""
OFFSET_INVALID: Final = -1001
"""No offset: not set, or not known."""

TIMESTAMP_NOT_AVAILABLE: Final = 0
TIMESTAMP_CREATE_TIME: Final = 1
TIMESTAMP_LOG_APPEND_TIME: Final = 2

PARTITION_UA: Final = -1
"""No partition named: the partitioner decides, or all of the topic's are meant."""
