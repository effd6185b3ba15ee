"""What a broker refuses a request for, before a handler sees it."""

from tidelog.log.base.errors import TidelogError


class MalformedRequestError(TidelogError):
    """Bytes that are no request of Kafka's protocol: the connection is closed, as Kafka does."""

    kafka_code = 42


class UnsupportedVersionError(TidelogError):
    """An API, or a version of one, that the broker does not offer."""

    kafka_code = 35
