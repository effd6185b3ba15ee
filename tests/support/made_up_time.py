"""Made-up time on stores that have a clock of their own.

A writer whose clock is an hour off its store's is refused. A `FakeClock` is years off the clock of a disk, or of a real
server: there it counts as right. In memory the store has the test's clock, and all is as in the product.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.logs import FakeClock

from tidelog.log.storage import LocalStorage, ObjectStorage
from tidelog.log.storage.store_time import StoreTime


@contextmanager
def made_up_time_counts_as_right() -> Iterator[None]:
    """Meanwhile no `FakeClock` is compared with the clock of a disk or a server."""
    keep = StoreTime.keep

    def keep_unless_made_up(self: Any, storage: Any, folder: str) -> None:
        if isinstance(self._clock, FakeClock) and type(_innermost(storage)) in (LocalStorage, ObjectStorage):
            self.learn = lambda *_: None
        else:
            keep(self, storage, folder)

    StoreTime.keep = keep_unless_made_up  # type: ignore[method-assign]
    try:
        yield
    finally:
        StoreTime.keep = keep  # type: ignore[method-assign]


def _innermost(storage: Any) -> Any:
    while hasattr(storage, "inner"):
        storage = storage.inner
    return storage
