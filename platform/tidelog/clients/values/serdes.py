"""The serializers or deserializers of a client: ready-made, or built when the client begins."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, NamedTuple

from tidelog.clients.values.errors import invalid_argument


class ConfiguredSerde(NamedTuple):
    """What a configuration says about a client's keys, or about its values: a serde, or what builds one."""

    name: str
    serde: Callable[..., Any] | None
    builder: Any
    is_key: bool

    def build(self, conf: Mapping[str, Any]) -> Any:
        """Have the builder build, with the whole configuration; None where there is none."""
        return None if self.builder is None else self.builder.build(dict(conf), self.is_key)


def configured_serdes(conf: Mapping[str, Any], what: str) -> tuple[list[ConfiguredSerde], dict[str, Any]]:
    """Return what `conf` says about `key.<what>` and `value.<what>`, and the rest of it.

    Raises ValueError where both a serde and a builder are given, KafkaException for a serde that can't be called.
    """
    left, configured = dict(conf), []
    for part in ("key", "value"):
        name = f"{part}.{what}"
        serde, builder = left.pop(name, None), left.pop(f"{name}.builder", None)
        if serde is not None and builder is not None:
            raise ValueError(f"Give either {name} or {name}.builder, not both.")
        if serde is not None and not callable(serde):
            raise invalid_argument(f"{name} must be a callable (object or bytes, SerializationContext), not {serde!r}.")
        configured.append(ConfiguredSerde(name, serde, builder, part == "key"))
    return configured, left


class Serdes:
    """A client's serdes: that of keys, then that of values, None where there is none.

    `conf`: the client's configuration without what any builder took out of it. `owned`: what was built, and is to be
    closed with the client.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        self.conf = dict(conf)
        self.owned: list[Any] = []
        self._found: list[Callable[..., Any] | None] = []

    @property
    def key(self) -> Callable[..., Any] | None:
        """That of keys."""
        return self._found[0]

    @property
    def value(self) -> Callable[..., Any] | None:
        """That of values."""
        return self._found[1]

    def add(self, configured: ConfiguredSerde, answer: Any) -> None:
        """Take over a ready-made serde, or a builder's `answer`: what it built, and the configuration it left.

        Raises ValueError for an answer that is anything but that pair.
        """
        if configured.builder is None:
            self._found.append(configured.serde)
            return
        if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping)):
            raise ValueError(f"{configured.name}.builder must answer build() with a tuple: what it built, and a dict.")
        serde, left = answer
        self._found.append(serde)
        self.owned.append(serde)
        self.conf = {name: value for name, value in self.conf.items() if name in left}

    def give_cluster_id(self, setter: str, cluster_id: Callable[..., Any]) -> None:
        """Give those that have this method a function that returns the lake's address."""
        for serde in self._found:
            if callable(take := getattr(serde, setter, None)):
                take(cluster_id)

    def close(self) -> None:
        """Close what was built, once, and the rest also when closing one of them fails."""
        with ExitStack() as ends:
            while self.owned:
                if callable(close := getattr(self.owned.pop(), "close", None)):
                    ends.callback(close)


class WithSerdes:
    """A client whose keys and values are objects, before the client of bytes in the order of bases.

    Builders run when the client begins; what they built is closed with it.
    """

    _KIND: ClassVar[str]

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        configured, left = configured_serdes({**(conf or {}), **more}, self._KIND)
        self._serdes = Serdes(left)
        try:
            for one in configured:
                self._serdes.add(one, one.build(left))
            super().__init__(self._serdes.conf)  # type: ignore[call-arg] # that of the client beside it
        except BaseException:
            self._serdes.close()
            raise
        self._serdes.give_cluster_id("set_cluster_id_resolver", self.cluster_id)  # type: ignore[attr-defined] # as above

    def close(self, *args: Any, **more: Any) -> Any:
        """Close as the client of bytes does, then what builders built."""
        closed = super().close(*args, **more)  # type: ignore[misc] # as above
        self._serdes.close()
        return closed
