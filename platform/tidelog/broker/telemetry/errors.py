"""What pushes of metrics are refused for."""

from tidelog.log.base.errors import TidelogError
from tidelog.log.base.kafka_codes import KafkaCode


class UnknownSubscriptionIdError(TidelogError, kafka_code=KafkaCode.UNKNOWN_SUBSCRIPTION_ID):
    """A client pushes by a subscription that is not, or no longer, its own."""


class UnsupportedCompressionTypeError(TidelogError, kafka_code=KafkaCode.UNSUPPORTED_COMPRESSION_TYPE):
    """A client's metrics are packed by a codec that there is none of."""


class TelemetryTooLargeError(TidelogError, kafka_code=KafkaCode.TELEMETRY_TOO_LARGE):
    """A push has more bytes than `telemetry.max.bytes`."""
