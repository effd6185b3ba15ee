"""The port of a log to its lake."""

from concurrent.futures import Executor
from typing import Protocol

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.checkpoints.writing import Checkpointer
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.storage.port import Storage
from tidelog.log.storage.store_time import StoreTime


class LakeContext(Protocol):
    """What topics and tables of rows need of the lake they are in."""

    storage: Storage
    clock: Clock
    ids: Ids
    time: StoreTime
    background: Executor
    checkpointer: Checkpointer

    def config(self) -> LakeConfig:
        """The lake's configuration."""

    def ensure_lake(self) -> None:
        """Create the lake unless it is there."""

    def require_lake(self) -> None:
        """Refuse to look into a lake that is not there."""

    def ensure_topic(self, name: str) -> str:
        """The id of the topic; creates it where the lake allows that."""
