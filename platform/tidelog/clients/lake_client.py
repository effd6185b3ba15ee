"""What producers and consumers have in common: they tell what there is in their lake, and end once."""

# ruff: noqa: ARG002 - confluent-kafka's parameters, which mean nothing here

import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, NoReturn, Self

from tidelog.clients.cluster import ClusterMetadata, cluster_metadata
from tidelog.clients.settings.ignored import NO_CREDENTIALS
from tidelog.clients.values.errors import KafkaError, kafka_exception, kafka_exceptions
from tidelog.log.lake import Lake


class LakeClient:
    """A client of a lake. A closed one raises RuntimeError."""

    _lake: Lake

    def _require_open(self) -> None:
        raise NotImplementedError

    def close(self) -> Any:
        """End the client."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """What there is in the lake: all topics but internal ones, or the one that is asked for.

        What is wrong with a topic is in its `error`. Raises KafkaException when the storage fails.
        """
        self._require_open()
        with kafka_exceptions():
            return cluster_metadata(self._lake, topic)

    def cluster_id(self, timeout: float = -1) -> str:
        """The lake's address."""
        self._require_open()
        return self._lake.uri

    def set_sasl_credentials(self, username: str, password: str) -> NoReturn:
        """Refused: a client signs in to the lake's store. Raises KafkaException (`_NOT_IMPLEMENTED`)."""
        self._require_open()
        raise kafka_exception(KafkaError._NOT_IMPLEMENTED, f"set_sasl_credentials: {NO_CREDENTIALS}.")


class Finalizer:
    """Ends a client once: by a call, by the garbage collection of the client, or at the interpreter's exit.

    `end` gets `args`, which must not lead to the client, and waits for the client's threads.
    """

    def __init__(self, client: object, end: Callable[..., None], *args: Any) -> None:
        self._end = partial(end, *args)
        self._finalize = weakref.finalize(client, _in_the_background, self._end)

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._finalize.alive

    def __call__(self) -> None:
        """End now, and wait for it."""
        if self._finalize.detach() is not None:
            self._end()


def _in_the_background(end: Callable[[], None]) -> None:
    """End a client that was garbage-collected, or left to the interpreter's exit.

    A garbage collection may run in one of the client's own threads, and anywhere with locks held that its threads wait
    for: a finalizer must not wait there.
    """
    if threading.main_thread().is_alive():
        threading.Thread(target=end, name="end-of-client", daemon=True).start()
    else:
        end()
