"""tidelog: a streaming platform with Kafka's semantics and no broker; the table is the log.

`import tidelog` loads little; each name below is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidelog import groups, spark
    from tidelog.log import errors, partitioners
    from tidelog.log.lake import Lake
    from tidelog.log.topic import Topic

__all__ = ["Lake", "Topic", "errors", "groups", "partitioners", "spark"]

_HOMES = {
    "Lake": ("tidelog.log.lake", "Lake"),
    "Topic": ("tidelog.log.topic", "Topic"),
    "errors": ("tidelog.log.errors", None),
    "groups": ("tidelog.groups", None),
    "partitioners": ("tidelog.log.partitioners", None),
    "spark": ("tidelog.spark", None),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tidelog' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    found = import_module(module)
    return found if attribute is None else getattr(found, attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
