"""The client and the serializers for asyncio: what asks a registry waits in a thread, all else runs in the loop."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextvars import ContextVar
from functools import update_wrapper
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar

from tidelog.clients.schema_registry.client import SchemaRegistryClient
from tidelog.clients.values.serialization import SerializationContext

P = ParamSpec("P")
R = TypeVar("R")

_FUNCTION: Final = "bearer.auth.custom.provider.function"
# The loop that waits for the call of a thread.
_LOOP: ContextVar[asyncio.AbstractEventLoop] = ContextVar("tidelog_registry_loop")


async def _in_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    _LOOP.set(asyncio.get_running_loop())
    return await asyncio.to_thread(call, *args, **kwargs)


def _awaited(
    method: Callable[Concatenate[SchemaRegistryClient, P], R],
) -> "Callable[Concatenate[AsyncSchemaRegistryClient, P], Coroutine[Any, Any, R]]":
    async def call(self: "AsyncSchemaRegistryClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await _in_thread(method, self.blocking, *args, **kwargs)

    return update_wrapper(call, method)


class AsyncSchemaRegistryClient:
    """A `SchemaRegistryClient` whose methods are coroutines.

    `conf`: as `SchemaRegistryClient` has it; `bearer.auth.custom.provider.function` may be a coroutine function.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        function = conf.get(_FUNCTION)
        given = conf if not inspect.iscoroutinefunction(function) else {**conf, _FUNCTION: _in_loop(function)}
        # The client whose calls wait.
        self.blocking = SchemaRegistryClient(given)
        self._conf = dict(conf)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.aclose()

    def config(self) -> dict[str, Any]:
        """The configuration that the client was given."""
        return self._conf

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> "AsyncSchemaRegistryClient":
        """A client."""
        return AsyncSchemaRegistryClient(conf)

    aclose = _awaited(SchemaRegistryClient.close)
    register_schema = _awaited(SchemaRegistryClient.register_schema)
    register_schema_full_response = _awaited(SchemaRegistryClient.register_schema_full_response)
    get_schema = _awaited(SchemaRegistryClient.get_schema)
    get_schema_by_guid = _awaited(SchemaRegistryClient.get_schema_by_guid)
    get_schema_types = _awaited(SchemaRegistryClient.get_schema_types)
    get_schema_versions = _awaited(SchemaRegistryClient.get_schema_versions)
    lookup_schema = _awaited(SchemaRegistryClient.lookup_schema)
    get_subjects = _awaited(SchemaRegistryClient.get_subjects)
    get_subjects_by_schema_id = _awaited(SchemaRegistryClient.get_subjects_by_schema_id)
    get_latest_version = _awaited(SchemaRegistryClient.get_latest_version)
    get_latest_with_metadata = _awaited(SchemaRegistryClient.get_latest_with_metadata)
    get_version = _awaited(SchemaRegistryClient.get_version)
    get_versions = _awaited(SchemaRegistryClient.get_versions)
    get_referenced_by = _awaited(SchemaRegistryClient.get_referenced_by)
    delete_subject = _awaited(SchemaRegistryClient.delete_subject)
    delete_version = _awaited(SchemaRegistryClient.delete_version)
    test_compatibility = _awaited(SchemaRegistryClient.test_compatibility)
    test_compatibility_all_versions = _awaited(SchemaRegistryClient.test_compatibility_all_versions)
    incompatibilities = _awaited(SchemaRegistryClient.incompatibilities)
    set_compatibility = _awaited(SchemaRegistryClient.set_compatibility)
    get_compatibility = _awaited(SchemaRegistryClient.get_compatibility)
    set_config = _awaited(SchemaRegistryClient.set_config)
    get_config = _awaited(SchemaRegistryClient.get_config)
    delete_config = _awaited(SchemaRegistryClient.delete_config)
    get_mode = _awaited(SchemaRegistryClient.get_mode)
    update_mode = _awaited(SchemaRegistryClient.update_mode)
    delete_mode = _awaited(SchemaRegistryClient.delete_mode)
    get_global_mode = _awaited(SchemaRegistryClient.get_global_mode)
    update_global_mode = _awaited(SchemaRegistryClient.update_global_mode)
    settings_in_force = _awaited(SchemaRegistryClient.settings_in_force)
    unset = _awaited(SchemaRegistryClient.unset)
    get_contexts = _awaited(SchemaRegistryClient.get_contexts)
    clear_caches = _awaited(SchemaRegistryClient.clear_caches)
    clear_latest_caches = _awaited(SchemaRegistryClient.clear_latest_caches)
    get_associations_by_resource_name = _awaited(SchemaRegistryClient.get_associations_by_resource_name)
    create_association = _awaited(SchemaRegistryClient.create_association)
    delete_associations = _awaited(SchemaRegistryClient.delete_associations)


class BlockingSerde(Protocol):
    """A serializer or a deserializer that waits where it must ask a registry."""

    def known(self, value: Any, ctx: SerializationContext | None, /) -> bool:
        """Whether a call needs no request."""

    def __call__(self, value: Any, ctx: SerializationContext | None = None, /) -> Any:
        """Bytes of an object, or the other way."""


S = TypeVar("S", bound=BlockingSerde)


class AsyncSerde(Generic[S]):
    """A serializer or a deserializer for asyncio, made at its first use, or by `await`. Calls are coroutines.

    The functions that it was given (`to_dict` and others) run in the loop, or, at a first message, in a thread.
    """

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._made: S | None = None

    def __await__(self) -> Generator[Any, None, Self]:
        return self._begun().__await__()

    async def _begun(self) -> Self:
        if self._made is None:
            self._made = await _in_thread(self._make)
        return self

    async def __call__(self, value: Any, ctx: SerializationContext | None = None) -> Any:
        """Bytes of an object, or the other way; None stays None. Raises as what is not for asyncio does."""
        if value is None:
            return None
        await self._begun()
        serde = self._made
        assert serde is not None  # made above
        if serde.known(value, ctx):
            return serde(value, ctx)
        return await _in_thread(serde, value, ctx)


def blocking(client: AsyncSchemaRegistryClient | None) -> Any:
    """The client that a serializer asks in its thread. Raises `TypeError` for one that is not for asyncio."""
    if not (client is None or isinstance(client, AsyncSchemaRegistryClient)):
        raise TypeError(f"The client must be an AsyncSchemaRegistryClient, not {type(client).__name__}.")
    return None if client is None else client.blocking


def _in_loop(function: Callable[[Any], Coroutine[Any, Any, R]]) -> Callable[[Any], R]:
    """What runs a coroutine function in the loop that waits for this thread's call."""

    def call(given: Any) -> R:
        return asyncio.run_coroutine_threadsafe(function(given), _LOOP.get()).result()

    return call
