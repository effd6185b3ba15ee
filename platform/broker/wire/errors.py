"""What a broker refuses a request for, before a handler sees it."""

from tidelog.log.base.errors import TidelogError


class ClosedConnectionError(TidelogError):
    """What a client is told by the end of its connection, as Kafka does: there is no answer that could say it."""


class MalformedRequestError(ClosedConnectionError, kafka_code=42):
    """Bytes that are no request of Kafka's protocol."""


class UnacknowledgedError(ClosedConnectionError):
    """Records that were sent with acks=0, and so have no answer, could not be appended."""


class UnsupportedVersionError(TidelogError):
    """An API, or a version of one, that the broker does not offer."""

    kafka_code = 35
