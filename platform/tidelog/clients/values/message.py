"""A record as programs see it, in the shape of `confluent_kafka.Message`: what a consumer polls, what a producer's
delivery callback is given."""

from typing import TYPE_CHECKING, Any, Generic

# The types of keys and values: of messages, and of the clients that make objects of bytes.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:  # a default of a type variable means nothing to a running program
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

TIMESTAMP_NOT_AVAILABLE = 0
TIMESTAMP_CREATE_TIME = 1
TIMESTAMP_LOG_APPEND_TIME = 2

_NO_TIME = (TIMESTAMP_NOT_AVAILABLE, -1)

Headers = list[tuple[str, bytes | None]]


class Message(Generic[K, V]):
    """A record, or an error event (`error()` is not None).

    `timestamp`: (type, ms since the epoch), the type one of TIMESTAMP_NOT_AVAILABLE, TIMESTAMP_CREATE_TIME and
    TIMESTAMP_LOG_APPEND_TIME; `latency`: seconds from `produce` to the acknowledgement. `key` and `value` are bytes,
    or what a deserializer made of them: of types K and V, for a type checker.
    """

    __slots__ = (
        "_error",
        "_headers",
        "_key",
        "_latency",
        "_leader_epoch",
        "_offset",
        "_partition",
        "_timestamp",
        "_topic",
        "_value",
    )

    def __init__(
        self,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        key: Any = None,
        value: Any = None,
        headers: Headers | None = None,
        error: Any = None,
        timestamp: tuple[int, int] = _NO_TIME,
        latency: float | None = None,
        leader_epoch: int | None = None,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._offset = offset
        self._key = key
        self._value = value
        self._headers = headers
        self._error = error
        self._timestamp = timestamp
        self._latency = latency
        self._leader_epoch = leader_epoch

    def topic(self) -> str | None:
        """The topic's name."""
        return self._topic

    def partition(self) -> int | None:
        """The partition's number; None where there is none yet."""
        return self._partition

    def offset(self) -> int | None:
        """The record's offset; None for a record that was not stored."""
        return self._offset

    def key(self) -> Any:
        """The key, or None."""
        return self._key

    def value(self) -> Any:
        """The value; None is a tombstone in a compacted topic."""
        return self._value

    def deserialized_key(self) -> K | None:
        """The key as `key()` gives it, with a deserializer's type."""
        key: K | None = self._key
        return key

    def deserialized_value(self) -> V | None:
        """The value as `value()` gives it, with a deserializer's type."""
        value: V | None = self._value
        return value

    def headers(self) -> Headers | None:
        """The headers in the producer's order, [(name, bytes or None)]; None when there are none."""
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        """(type, ms since the epoch). Without one, the type is TIMESTAMP_NOT_AVAILABLE and the time means nothing."""
        return self._timestamp

    def error(self) -> Any:
        """The `KafkaError` of an event or of a record that failed; None for a proper record."""
        return self._error

    def latency(self) -> float | None:
        """A produced record's seconds from `produce` to its acknowledgement; None for a consumed one."""
        return self._latency

    def leader_epoch(self) -> int | None:
        """The epoch of the partition's leader; None where there is no leader."""
        return self._leader_epoch

    def delivery_count(self) -> None:
        """None: only share groups count deliveries, and there are none."""

    def set_key(self, key: Any) -> None:
        """Replace the key, as a deserializer does."""
        self._key = key

    def set_value(self, value: Any) -> None:
        """Replace the value, as a deserializer does."""
        self._value = value

    def set_headers(self, headers: Headers | None) -> None:
        """Replace the headers."""
        self._headers = headers

    def set_topic(self, topic: str) -> None:
        """Replace the topic's name."""
        self._topic = topic

    def set_error(self, error: Any) -> None:
        """Replace the error."""
        self._error = error

    def __len__(self) -> int:
        """The value's size in bytes."""
        return 0 if self._value is None else len(self._value)

    def __bool__(self) -> bool:
        """True: a message without a value is a message."""
        return True

    def __repr__(self) -> str:
        return f"<Message {self._topic} [{self._partition}] @ {self._offset}>"
