"""Errors in the shape of confluent-kafka's: a `KafkaError` is a value, a `KafkaException` is raised with one inside."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import total_ordering
from typing import Any

from tidelog.clients.values.error_codes import NAMES, ErrorCodes, describe
from tidelog.clients.values.message import Message
from tidelog.log.base.errors import (
    FencedInstanceError,
    InvalidUriError,
    LakeFileLostError,
    LakeNotFoundError,
    TidelogError,
)

# Errors of tidelog's that Kafka's protocol has no code for, but librdkafka's own codes have.
_LOCAL_CODES: dict[type[TidelogError], int] = {
    InvalidUriError: ErrorCodes._INVALID_ARG,
    LakeNotFoundError: ErrorCodes._INVALID_ARG,
    LakeFileLostError: ErrorCodes._INVALID_ARG,
}
# After these the client can't go on, whichever call meets them.
_FATAL = (FencedInstanceError,)


@total_ordering
class KafkaError(ErrorCodes):
    """What went wrong: a code, words, and what that means for the caller.

    `code`: one of the constants. `reason`: the words, the code's own where None. `fatal`: the client can't go on;
    `retriable`: the same call may succeed later; `txn_requires_abort`: the open transaction must be aborted first.
    Compares with ints and other errors by code. Source: `confluent_kafka.KafkaError`.
    """

    __slots__ = ("_abort", "_code", "_fatal", "_reason", "_retriable")

    def __init__(
        self,
        code: int,
        reason: str | None = None,
        fatal: bool = False,
        retriable: bool = False,
        txn_requires_abort: bool = False,
    ) -> None:
        self._code = int(code)
        self._reason = describe(self._code) if reason is None else str(reason)
        self._fatal = bool(fatal)
        self._retriable = bool(retriable)
        self._abort = bool(txn_requires_abort)

    def code(self) -> int:
        """Return the code, to compare with the constants."""
        return self._code

    def name(self) -> "str":
        """Return the code's name, `ERR_<code>?` for a code without one."""
        return NAMES.get(self._code, f"ERR_{self._code}?")

    def fatal(self) -> bool:
        """Return whether the client can't go on: close it and make another."""
        return self._fatal

    def retriable(self) -> bool:
        """Return whether the same call may succeed later without any change."""
        return self._retriable

    def txn_requires_abort(self) -> bool:
        """Return whether the open transaction must be aborted."""
        return self._abort

    def __repr__(self) -> "str":
        fatal = "FATAL," if self._fatal else ""
        return f'KafkaError{{{fatal}code={self.name()},val={self._code},str="{self._reason}"}}'

    def __hash__(self) -> int:
        return self._code

    def __eq__(self, other: object) -> bool:
        code = _code_of(other)
        return NotImplemented if code is None else self._code == code

    def __lt__(self, other: object) -> bool:
        code = _code_of(other)
        return NotImplemented if code is None else self._code < code

    # last, because inside the class it hides the built-in of that name
    def str(self) -> "str":
        """Return the words."""
        return self._reason


def _code_of(other: object) -> int | None:
    if isinstance(other, KafkaError):
        return other.code()
    return other if isinstance(other, int) else None


class KafkaException(Exception):  # noqa: N818 - confluent-kafka's name
    """Raised by the clients; `args[0]` is a `KafkaError`."""


def kafka_error(error: TidelogError, *, fatal: bool = False) -> KafkaError:
    """Return one of tidelog's errors as a `KafkaError`: its Kafka code, its words, and whether a retry may help."""
    code = _LOCAL_CODES.get(type(error), error.kafka_code)
    return KafkaError(code, str(error), fatal=fatal or isinstance(error, _FATAL), retriable=error.retriable)


@contextmanager
def kafka_exceptions(convert: Callable[[TidelogError], KafkaError] = kafka_error) -> Iterator[None]:
    """Raise tidelog's errors as KafkaException."""
    try:
        yield
    except TidelogError as e:
        raise KafkaException(convert(e)) from e


def kafka_exception(code: int, reason: str, *, fatal: bool = False, retriable: bool = False) -> KafkaException:
    """Return a KafkaException with the KafkaError that these make."""
    return KafkaException(KafkaError(code, reason, fatal, retriable))


def invalid_argument(reason: str) -> KafkaException:
    """Return what the clients raise for a configuration or an argument that they can't take."""
    return kafka_exception(KafkaError._INVALID_ARG, reason)


class SerializationError(KafkaException):
    """A key or a value can't be made from bytes, or made into bytes."""


class _ClientError(KafkaException):
    """An error of one record: `kafka_message` is the record as far as there is one, `exception` the cause."""

    def __init__(
        self, kafka_error: KafkaError, exception: BaseException | None = None, kafka_message: Any = None
    ) -> None:
        super().__init__(kafka_error)
        self.exception = exception
        self.kafka_message = kafka_message

    @property
    def code(self) -> int:
        """The error's code."""
        error: KafkaError = self.args[0]
        return error.code()

    @property
    def name(self) -> str:
        """The name of the error's code."""
        error: KafkaError = self.args[0]
        return error.name()


class ConsumeError(_ClientError):
    """A record could not be consumed; `kafka_message` is the record, its key and value still bytes."""


def _named(message: Any, part: str, cause: BaseException | None) -> str:
    return f"{message!r}: the {part} can't be deserialized: {cause}" if isinstance(message, Message) else str(cause)


class KeyDeserializationError(ConsumeError, SerializationError):
    """The key deserializer failed."""

    def __init__(self, exception: BaseException | None = None, kafka_message: Any = None) -> None:
        reason = _named(kafka_message, "key", exception)
        super().__init__(KafkaError(KafkaError._KEY_DESERIALIZATION, reason), exception, kafka_message)


class ValueDeserializationError(ConsumeError, SerializationError):
    """The value deserializer failed."""

    def __init__(self, exception: BaseException | None = None, kafka_message: Any = None) -> None:
        reason = _named(kafka_message, "value", exception)
        super().__init__(KafkaError(KafkaError._VALUE_DESERIALIZATION, reason), exception, kafka_message)


class ProduceError(_ClientError):
    """A record could not be produced."""

    def __init__(self, kafka_error: KafkaError, exception: BaseException | None = None) -> None:
        super().__init__(kafka_error, exception)


class KeySerializationError(ProduceError, SerializationError):
    """The key serializer failed."""

    def __init__(self, exception: BaseException | None = None) -> None:
        super().__init__(KafkaError(KafkaError._KEY_SERIALIZATION, str(exception)), exception)


class ValueSerializationError(ProduceError, SerializationError):
    """The value serializer failed."""

    def __init__(self, exception: BaseException | None = None) -> None:
        super().__init__(KafkaError(KafkaError._VALUE_SERIALIZATION, str(exception)), exception)
