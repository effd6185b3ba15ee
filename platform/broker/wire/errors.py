"""What a broker refuses a request for, before a handler sees it."""

from tidelog.log.base.errors import TidelogError


class ClosedConnectionError(TidelogError):
    """What only the end of a connection can say to its client, as in Kafka: there is no answer for it."""


class MalformedRequestError(ClosedConnectionError, kafka_code=42):
    """Bytes that are no request of Kafka's protocol."""


class UnacknowledgedError(ClosedConnectionError):
    """Records that were sent with acks=0, and so have no answer, could not be appended."""


class UnsupportedVersionError(TidelogError):
    """An API, or a version of one, that the broker does not offer."""

    kafka_code = 35
