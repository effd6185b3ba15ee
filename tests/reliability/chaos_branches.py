"""Branches of a lake that suffers: one is made every few seconds, and each is judged before it is discarded."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from chaos_judge import Judged, MadeBranch
from chaos_plan import TOPICS, Place
from support.nursery import ForkedPython

from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.mirror.branch.making import make_branch

SCRIPT = Path(__file__).with_name("chaos_judge.py")
# The most branches that wait for their judge; then none is made until one was judged.
MOST_WAITING = 30
_TRIES = 10
_MOST_PROBLEMS = 50


class Branches:
    """Makes a branch every `every_s` seconds by the clock; another process judges them. `problems`: what was wrong."""

    def __init__(self, place: Place, every_s: float) -> None:
        self._place = place
        self._every_s = every_s
        self._ends = threading.Event()
        # A branch is a program, and a power cut ends all of them: one is not made amid it.
        self._power = threading.Lock()
        self._room = threading.Semaphore(MOST_WAITING)
        self._maker = threading.Thread(target=self._make_all, name="branches")
        self._listener = threading.Thread(target=self._listen, name="verdicts")
        self._judge: subprocess.Popen[str]
        self._number = 0
        self._made_ms: list[int] = []
        self._judged: list[Judged] = []
        self._waits = 0
        self.problems: list[str] = []

    def __enter__(self) -> "Branches":
        if self._every_s:
            command = [sys.executable, str(SCRIPT), str(self._place.folder)]
            words = self._place.words / "judge"
            with words.open("wb") as file:
                self._judge = ForkedPython(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True
                )
            self._listener.start()
            self._maker.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait until all are judged."""
        self.make_no_more()
        if not self._every_s:
            return
        assert self._judge.stdin is not None
        self._judge.stdin.close()
        self._listener.join()
        if self._judge.wait() or len(self._judged) < len(self._made_ms):
            words = (self._place.words / "judge").read_text()[-2_000:]
            self.problems.append(f"{len(self._judged)} of {len(self._made_ms)} branches were judged: {words}")

    def make_no_more(self) -> None:
        """End the making; judging goes on."""
        self._ends.set()
        if self._every_s:
            self._maker.join()

    @contextmanager
    def none_amid(self) -> Iterator[None]:
        """Meanwhile no branch is made."""
        with self._power:
            yield

    @property
    def counts(self) -> dict[str, int]:
        """What there was of them, for the verdict of a run."""
        if not self._every_s:
            return {}
        made, judged = sorted(self._made_ms), sorted(one.took_s for one in self._judged)
        return {
            "branches made": len(made),
            "branches judged": len(judged),
            "branches that waited for room, as many others waited for the judge": self._waits,
            "branches: p50 of making one, ms": made[len(made) // 2] if made else 0,
            "branches: longest making of one, ms": made[-1] if made else 0,
            "branches: p50 of judging one, ms": round(1000 * judged[len(judged) // 2]) if judged else 0,
            "branches: longest judging of one, ms": round(1000 * judged[-1]) if judged else 0,
            "branches: records in the last one": self._judged[-1].records if self._judged else 0,
        }

    # --- making --------------------------------------------------------------------------------------------

    def _make_all(self) -> None:
        due_s = time.monotonic()
        while True:
            due_s += self._every_s
            if self._ends.wait(max(0.0, due_s - time.monotonic())):
                return
            if not self._room.acquire(blocking=False):
                self._waits += 1
                while not self._room.acquire(timeout=1.0):
                    if self._ends.is_set() or self._judge.poll() is not None:
                        return
            try:
                made = self._make_one()
            except TidelogError as e:
                self.problems.append(f"branch {self._number}: {type(e).__name__}: {e}")
                self._room.release()
            else:
                self._hand_over(made)
            self._number += 1

    def _make_one(self) -> MadeBranch:
        with self._power, self._place.seen() as lake:
            began_s, began = time.time(), time.monotonic()
            bounds = [(name, p, *at) for name in TOPICS for p, at in lake.offsets(name).items()]
            made = MadeBranch(self._number, began_s, 0.0, bounds)
            with Lake(str(made.folder(self._place)), None, may_change_follower=True) as branch:
                self._make(lake, branch)
            self._made_ms.append(round(1000 * (time.monotonic() - began)))
            return MadeBranch(self._number, began_s, time.time(), bounds)

    def _make(self, lake: Lake, branch: Lake) -> None:
        """What failed and may be tried again is, by the same call."""
        for left in reversed(range(_TRIES)):
            try:
                make_branch(lake, branch)
                return
            except TidelogError as e:
                if not (e.retriable and left):
                    raise
                self._ends.wait(0.2)

    # --- judging -------------------------------------------------------------------------------------------

    def _hand_over(self, made: MadeBranch) -> None:
        assert self._judge.stdin is not None
        try:
            self._judge.stdin.write(json.dumps(asdict(made)) + "\n")
            self._judge.stdin.flush()
        except BrokenPipeError:
            self._ends.set()  # the judge has ended: the end of the run says so

    def _listen(self) -> None:
        assert self._judge.stdout is not None
        with (self._place.folder / "judged.jsonl").open("w") as file:
            for line in self._judge.stdout:
                file.write(line)
                file.flush()
                judged = Judged(**json.loads(line))
                self._judged.append(judged)
                self.problems += judged.problems[: max(0, _MOST_PROBLEMS - len(self.problems))]
                self._room.release()
