"""Failures that connectors, transforms and converters raise, by Connect's names for them."""

from tidelog.log.base.errors import TidelogError


class ConnectError(TidelogError):
    """A task, a transform or a converter can't go on (Connect's `ConnectException`)."""


class RetriableConnectError(ConnectError, retriable=True):
    """The same call may succeed later: the worker repeats it, with backoff (Connect's `RetriableException`)."""


class DataError(ConnectError):
    """A record's key, value or header isn't what its schema or the caller asks for (Connect's `DataException`)."""
