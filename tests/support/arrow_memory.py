"""How much memory Arrow takes inside a block."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

# Arrow may free what a pool gave long after the block: pools must live on.
_pools: list[pa.MemoryPool] = []


@contextmanager
def arrow_peak() -> Iterator[Callable[[], int]]:
    """Gives the number of bytes that were allocated at most at once since the block began."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    _pools.append(pool)
    pa.set_memory_pool(pool)
    try:
        yield pool.max_memory
    finally:
        pa.set_memory_pool(before)
