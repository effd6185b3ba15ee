"""A read that lasts: what a rewrite took out of the log meanwhile, it hands out no more."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final

import pyarrow as pa

from tidelog.log.base.clock import Clock
from tidelog.log.segments.fetch import FetchPlan

# Between looks at the log.
LOOK_S: Final = 1.0


def read_on(
    plan: FetchPlan,
    read: Callable[[FetchPlan], Iterator[pa.RecordBatch]],
    look: Callable[[FetchPlan], FetchPlan | None],
    clock: Clock,
) -> Iterator[pa.RecordBatch]:
    """The plan's records, as `read` gives them.

    `look` looks at the log and gives the plan for what is left, where that was rewritten since the plan was made.
    """
    looked_s = clock.elapsed_s()
    again: FetchPlan | None = plan
    while again is not None:
        plan, again = again, None
        with closing(read(plan)) as batches:  # type: ignore[type-var]
            for batch in batches:
                yield batch
                now_s = clock.elapsed_s()
                if now_s - looked_s < LOOK_S:
                    continue
                looked_s = now_s
                again = look(replace(plan, start=batch.column("offset")[-1].as_py() + 1))
                if again is not None:
                    break
