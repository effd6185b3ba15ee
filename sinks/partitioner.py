"""The partitioner that option `partitioner` names."""

from importlib import import_module

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.records.partitioners import PARTITIONERS, Partitioner


def load_partitioner(name: str) -> str | Partitioner:
    """A rule's name as it is, or the function that `module:function` names."""
    if name in PARTITIONERS:
        return name
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError) as e:
        raise InvalidOptionError(
            f"Partitioner '{name}' can't be loaded: {e}. Ship its module to the executors (spark-submit --py-files)."
        ) from e
    if not callable(found):
        raise InvalidOptionError(f"Partitioner '{name}' is {type(found).__name__}, not a function of keys and a count.")
    return found  # type: ignore[no-any-return]
