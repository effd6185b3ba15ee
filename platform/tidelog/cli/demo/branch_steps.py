"""`tidelog demo --branch`: a bad producer is taken out of a lake again, after a branch has shown what is wrong."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
from rich.console import Console
from rich.text import Text

from tidelog.cli.demo.flights import Flights, as_records
from tidelog.cli.demo.lake import DemoFolder
from tidelog.cli.demo.screen import Screen, seconds
from tidelog.commands.terminal import number
from tidelog.cuts.model import Cut, UnknownCutError
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.lake import Lake
from tidelog.mirror.branch.discarding import discard_branch
from tidelog.mirror.branch.making import make_branch
from tidelog.mirror.branch.plan import scratch_address
from tidelog.operations.cuts import create_cut, delete_cut
from tidelog.operations.lake_diff.diff import diff
from tidelog.operations.rewinds import rewind_topics
from tidelog.retention.predicates.parse import parse_where

DEFAULT_FOLDER: Final = Path("demo-branch-lake")
GROUP: Final = "board"
CUT: Final = "before-deploy-42"
# How many flights each of the demo's producers sends, and how many in one batch.
BEFORE, AFTER, BATCH = 20_000, 5_000, 1_000


def run_branch(folder: Path | None, console: Console, flights: Flights) -> int:
    """Run the demo on the lake in a folder; 0, or 1 when a result is wrong. Raises as `start_afresh`."""
    clock = SystemClock()
    started_s = clock.elapsed_s()
    screen = Screen(console, clock)
    own = DemoFolder(folder or DEFAULT_FOLDER)
    with Lake(str(own.lake)) as lake:
        _BranchSteps(screen, own, lake, flights.year.slice(0, BEFORE + 2 * AFTER), clock).run()
    took = seconds(clock.elapsed_s() - started_s)
    words = ("1 check failed", "bold red") if screen.failed == 1 else (f"{screen.failed} checks failed", "bold red")
    screen.print(Text.assemble(words if screen.failed else ("Done", "bold green"), f" in {took}. The lake: {own.lake}"))
    return 1 if screen.failed else 0


class _BranchSteps:
    """The steps, in order."""

    def __init__(self, screen: Screen, folder: DemoFolder, lake: Lake, flights: pa.Table, clock: Clock) -> None:
        self._screen = screen
        self._folder = folder
        self._lake = lake
        self._clock = clock
        self._records = as_records(flights)

    def run(self) -> None:
        """Run all of them."""
        self._fill()
        cut = self._cut()
        self._deploy()
        self._look(cut)
        self._rewind(cut)

    def _fill(self) -> None:
        with self._screen.step("Flights come in, and a group reads them") as step:
            if self._folder.start_afresh(self._lake):
                step.say("An earlier demo's topics were deleted first.")
            self._send(self._lake, 0, BEFORE, b"41")
            ends = self._lake.offsets("flights")
            positions = {("flights", p): CommittedOffset(end) for p, (_, end) in ends.items()}
            GroupLog(self._lake).commit_offsets(GROUP, positions)
            step.say(f"{number(BEFORE)} flights by deploy 41 in topic flights; group {GROUP} has read them all.")

    def _cut(self) -> Cut:
        with self._screen.step("The lake gets a name as it is, before a deploy") as step:
            with suppress(UnknownCutError):
                delete_cut(self._lake, CUT)  # an earlier demo's
            began_s = self._clock.elapsed_s()
            cut = create_cut(self._lake, CUT, keep=True)
            step.say(f"Cut {CUT}, in {seconds(self._clock.elapsed_s() - began_s)}: nothing was copied.")
            step.check(cut.records >= BEFORE, "all flights are in it", f"{cut.records} are")
        return cut

    def _deploy(self) -> None:
        with self._screen.step("Deploy 42 goes wrong, while deploy 41 still runs elsewhere") as step:
            for first in range(0, AFTER, BATCH):
                self._send(self._lake, BEFORE + first, BATCH, b"42", _in_seconds)
                self._send(self._lake, BEFORE + AFTER + first, BATCH, b"41")
            GroupLog(self._lake).commit_offsets(
                GROUP, {("flights", p): CommittedOffset(end) for p, (_, end) in self._lake.offsets("flights").items()}
            )
            step.say(f"{number(AFTER)} flights of it have delays in seconds, amid {number(AFTER)} good ones.")

    def _look(self, cut: Cut) -> None:
        with self._screen.step("Deploy 43 is tried out on a branch of the cut") as step:
            began_s = self._clock.elapsed_s()
            with _branch(self._lake, cut.name) as branch:
                step.say(f"A lake of its own in {seconds(self._clock.elapsed_s() - began_s)}, which shares all files.")
                fresh = diff(self._lake, branch, "flights", shown=0).topics[0]
                step.check(
                    fresh.counts == {"only in A": 2 * AFTER, "only in B": 0, "differs": 0},
                    f"the diff: the lake has {number(2 * AFTER)} flights more",
                    f"{fresh.counts}",
                )
                step.check(fresh.read == 2 * AFTER, "and reads no others for that", f"it read {fresh.read}")
                self._send(branch, BEFORE, AFTER, b"43")
                delays = [_delay(value) for value in self._values(branch, cut)]
                step.check(max(delays) < 24 * 60, "deploy 43 writes minutes", f"the largest is {max(delays)}")
            step.check(len(self._values(self._lake, cut)) == 2 * AFTER, "the lake knows nothing of it", "it does")

    def _rewind(self, cut: Cut) -> None:
        with self._screen.step("What deploy 42 wrote is taken out of the lake") as step:
            where = parse_where("headers['deploy'] = '42'")
            before = self._lake.offsets("flights")
            done = rewind_topics(self._lake, cut, ["flights"], where=where, groups=True, execute=True)
            step.check(not done.failed, "the rewind went through", f"{done.failed}")
            left = [_delay(value) for value in self._values(self._lake, cut)]
            step.check(len(left) == AFTER, f"{number(AFTER)} flights of deploy 41 are still there", f"{len(left)} are")
            step.check(max(left) < 24 * 60, "and all delays are minutes", f"the largest is {max(left)}")
            step.check(self._lake.offsets("flights") == before, "no offset was given again, none moved", "some did")
            offsets = GroupLog(self._lake).offsets(GROUP)
            ends = {("flights", p): end for p, end in cut.topics["flights"].ends.items()}
            again = {place: one.offset for place, one in offsets.items()} == ends
            step.check(again, f"group {GROUP} is back at the cut, and reads on from there", f"it is at {offsets}")
            delete_cut(self._lake, cut.name)

    def _send(
        self, lake: Lake, first: int, count: int, deploy: bytes, changed: Callable[[bytes], bytes] | None = None
    ) -> None:
        headers = [[{"key": "deploy", "value": deploy}]]
        for at in range(first, first + count, BATCH):
            batch = self._records.slice(at, BATCH)
            if changed is not None:
                values = [changed(value) for value in batch["value"].to_pylist()]
                batch = batch.set_column(batch.schema.get_field_index("value"), "value", pa.array(values, pa.binary()))
            lake.topic("flights").append(batch.append_column("headers", [headers * len(batch)]))

    @staticmethod
    def _values(lake: Lake, cut: Cut) -> list[bytes]:
        """The values that came after the cut."""
        topic = lake.topic("flights")
        ends = cut.topics["flights"].ends
        return [v for p, end in ends.items() for b in topic.read(p, end) for v in b.column("value").to_pylist()]


@contextmanager
def _branch(lake: Lake, cut: str) -> Iterator[Lake]:
    """A branch beside the lake, gone at the end of the block: what `tidelog.Lake.branch` gives."""
    place = scratch_address(lake.uri, lake.ids.new()[-8:])
    with Lake(place, None, may_change_follower=True) as branch:
        make_branch(lake, branch, cut)
        yield branch
        discard_branch(branch, lambda _: lake.storage)


def _in_seconds(value: bytes) -> bytes:
    flight: dict[str, Any] = orjson.loads(value)
    return orjson.dumps(flight | {"dep_delay": 60 * 60 * (1 + abs(_delay(value)))})


def _delay(value: bytes) -> int:
    return int(orjson.loads(value).get("dep_delay") or 0)
