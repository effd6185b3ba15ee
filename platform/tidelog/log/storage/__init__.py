"""Where a lake keeps its bytes: the port, its adapters, and the way from an address to one of them."""

from tidelog.log.storage.local import LocalStorage
from tidelog.log.storage.memory import MemoryStorage
from tidelog.log.storage.objects import ObjectStorage
from tidelog.log.storage.opening import memory_storage, open_storage
from tidelog.log.storage.port import ObjectInfo, Storage

__all__ = [
    "LocalStorage",
    "MemoryStorage",
    "ObjectInfo",
    "ObjectStorage",
    "Storage",
    "memory_storage",
    "open_storage",
]
