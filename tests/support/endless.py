"""A process that does nothing any more, as a broker's once was, whose loop went round and round."""

from itertools import repeat
from multiprocessing.connection import Connection

from tidelog.server.process.children import end_with_parent


def never_ends(says: Connection) -> None:
    """Say that it runs, and go on for ever, but for the end of the process that started it."""
    end_with_parent(lambda: print("asked", flush=True), 0.5)
    says.send("begun")
    for _ in repeat(None):
        pass
