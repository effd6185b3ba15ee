"""The port of a log to its lake."""

from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from typing import Protocol

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.checkpoints.writing import Checkpointer
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.delta.written_schemas import WrittenSchema
from tidelog.log.storage.port import Storage
from tidelog.log.storage.store_time import StoreTime


class Subjects(Protocol):
    """The schemas of the lake's registry."""

    def schema(self, named: int | bytes, subject: str) -> WrittenSchema | None:
        """The schema that a subject has under an id or a guid."""

    def newest(self, subject: str, *, now: bool = False) -> WrittenSchema | None:
        """The schema of a subject's newest version, some seconds old unless it must be that of now."""

    def why_not(self, question: Hashable) -> str | None:
        """Why nothing was to be had a moment ago: by (subject, id or guid), or what `remember` was given."""

    def remember(self, question: Hashable, why: str) -> None:
        """Note that nothing is to be had."""


class LakeContext(Protocol):
    """What topics and tables of rows need of the lake they are in."""

    storage: Storage
    clock: Clock
    ids: Ids
    time: StoreTime
    background: Executor
    checkpointer: Checkpointer

    @property
    def value_schemas(self) -> Subjects:
        """The schemas of the lake's registry, for typed topics."""

    def config(self) -> LakeConfig:
        """The lake's configuration."""

    def ensure_lake(self) -> None:
        """Create the lake unless it is there."""

    def require_lake(self) -> None:
        """Refuse to look into a lake that is not there."""

    def permit(self, name: str) -> Callable[[], None]:
        """What refuses changes of the table of that name where the lake follows another one."""

    def ensure_topic(self, name: str) -> str:
        """The id of the topic; creates it where the lake allows that."""
