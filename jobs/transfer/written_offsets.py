"""Which offsets a job's records got, by the log entries that hold them: exact, also while others produce."""

from collections.abc import Callable

from tidelog.jobs.transfer.report import Place, Transferred, total
from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.delta.actions import Add, Entry, Txn, decode_entry
from tidelog.log.delta.layout import SINK_PREFIX, entry_path
from tidelog.log.lake import Lake


class Written:
    """Follows a topic for the entries of one job. `look` after each batch: entries are not kept for ever."""

    def __init__(self, lake: Lake, topic: str, is_own: Callable[[Entry], bool]) -> None:
        self._lake = lake
        self._topic = topic
        self._is_own = is_own
        self._seen = lake.topic(topic).state().version
        self.entries = 0
        self.moved: dict[Place, Transferred] = {}

    def look(self, *, single: bool = False) -> dict[Place, Transferred]:
        """What the job's entries since the last look added. `single`: the job makes one entry, lately."""
        head = self._lake.topic(self._topic).state().version
        moves: list[dict[Place, Transferred]] = []
        for version in range(head, self._seen, -1):
            path = f"{self._topic}/{entry_path(version)}"
            try:
                entry = decode_entry(version, self._lake.storage.get(path), path)
            except ObjectNotFoundError:
                break  # trimmed, and so are all before it
            if self._is_own(entry):
                moves.append(added(self._topic, entry))
                if single:
                    break
        self._seen = head
        self.entries += len(moves)
        new = total(reversed(moves))
        self.moved = total((self.moved, new))
        return new


def added(topic: str, entry: Entry) -> dict[Place, Transferred]:
    """The offsets, records and bytes that an entry adds to each partition."""
    return total(
        {(topic, a.partition): Transferred(a.base_offset, a.end, a.end - a.base_offset, a.size)}
        for a in entry.actions
        if isinstance(a, Add) and a.end is not None
    )


def of_request(request_id: str) -> Callable[[Entry], bool]:
    """Entries of one request."""
    return lambda entry: entry.info.request_id == request_id


def of_query(query_id: str) -> Callable[[Entry], bool]:
    """Entries of one streaming query's batches."""
    app_id = f"{SINK_PREFIX}{query_id}"
    return lambda entry: any(isinstance(a, Txn) and a.app_id == app_id for a in entry.actions)
