"""`multiprocessing` with processes that are forked from one that has imported the log: they share nothing else."""

import multiprocessing
import os
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from typing import Final

from support.nursery import TESTS

from tidelog.log.base.environment import ONE_THREAD

_PRELOADED: Final = [
    "hypothesis",
    "pandas",
    "pytest",
    "obstore.store",
    "support.mirror_processes",
    "tidelog.check.lake",
    "tidelog.clients.producer.producer",
]


@cache
def forking() -> ForkServerContext:
    """The context, once its server runs, which ends with this process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    before = {name: os.environ.get(name) for name in (*ONE_THREAD, "PYTHONPATH")}
    os.environ.update(ONE_THREAD, PYTHONPATH=str(TESTS))
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return context
