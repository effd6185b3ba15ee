"""Looks at a lake that take as long as a test wants."""

import threading

import pytest

from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import TopicState


class Gate:
    """Holds those that look at one topic until `open` is set; `reached` says that a caller waits."""

    def __init__(self, lake: Lake, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        self._peek, self._name = lake.peek, name
        monkeypatch.setattr(lake, "peek", self._passed)

    def _passed(self, name: str) -> TopicState | None:
        if name == self._name:
            self.reached.set()
            self.open.wait()
        return self._peek(name)
