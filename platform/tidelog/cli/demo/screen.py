"""What the demo shows: steps with their time, a spinner and a bar while they run, tables, and checks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tidelog.log.base.clock import Clock

MOST_COLUMNS = 100
_INDENT = 4
_LOOK_S = 0.1


@dataclass
class DemoStep:
    """A step that runs: what it has to say is shown once it is done, below its title and its time."""

    progress: Progress
    bar: TaskID
    marks: tuple[str, str]
    shown: list[RenderableType] = field(default_factory=list)
    failed: int = 0

    def say(self, text: str) -> None:
        """A line, or more, of text."""
        self.shown.append(Text(text))

    def show(self, table: RenderableType) -> None:
        """A table."""
        self.shown.append(table)

    def check(self, holds: bool, claim: str, otherwise: str) -> None:
        """A claim that was tested; `otherwise` says what was found when it does not hold."""
        good, bad = self.marks
        mark, words = ((good, "green"), claim) if holds else ((bad, "bold red"), f"{claim}: not so. {otherwise}")
        self.shown.append(Text.assemble(mark, " ", words))
        self.failed += not holds

    @contextmanager
    def watched(self, look: Callable[[], tuple[int, int] | None]) -> Iterator[None]:
        """Move the bar while the body works: `look` says how much is done, and of how much."""
        done = Event()

        def follow() -> None:
            while not done.wait(_LOOK_S):
                if seen := look():
                    now, of = seen
                    # The bar never fills up, which would stop the spinner while there is more to do.
                    self.progress.update(self.bar, completed=min(now, of - 0.01), total=of)

        # The body stays where it is: Spark finds Python data sources only in the thread that has its session.
        watcher = Thread(target=follow, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            self.progress.update(self.bar, completed=0, total=None)


class Screen:
    """Shows a demo on a console; at most `MOST_COLUMNS` wide."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._width = min(console.width, MOST_COLUMNS)
        self._steps = 0
        self._marks = ("ok", "NOT OK") if console.options.ascii_only else ("✓", "✗")
        self.failed = 0

    def print(self, what: RenderableType = "") -> None:
        """Print to the full width."""
        self._console.print(what, width=self._width)

    def print_whole(self, line: Text) -> None:
        """Print a line that may be copied: never wrapped, whatever the width."""
        self._console.print(line, soft_wrap=True)

    @contextmanager
    def step(self, title: str) -> Iterator[DemoStep]:
        """Run the body as a step. A step that raises shows what it had to say, without a time."""
        self._steps += 1
        heading = Text.assemble((f"{self._steps:>2}  ", "cyan"), (title, "bold"))
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(30), TimeElapsedColumn())
        started = self._clock.elapsed_s()
        with Progress(
            *columns,
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not self._console.is_terminal,
        ) as progress:
            step = DemoStep(progress, progress.add_task(title, total=None), self._marks)
            try:
                yield step
            except BaseException:
                progress.stop()
                self._finish(heading, "", step)
                raise
        self._finish(heading, seconds(self._clock.elapsed_s() - started), step)

    def _finish(self, heading: Text, time: str, step: DemoStep) -> None:
        line = Table.grid(expand=True)
        line.add_column()
        line.add_column(justify="right")
        line.add_row(heading, Text(time, "cyan"))
        self.print(line)
        for what in step.shown:
            self.print(Padding(what, (0, 0, 0, _INDENT)))
        self.print()
        self.failed += step.failed


def seconds(elapsed_s: float) -> str:
    """A duration to read: 0.0312 -> "31 ms", 12.345 -> "12.3 s", 75 -> "1 min 15 s"."""
    if elapsed_s >= 59.95:
        minutes, rest = divmod(round(elapsed_s), 60)
        return f"{minutes} min {rest} s"
    return f"{elapsed_s * 1000:.0f} ms" if elapsed_s < 0.9995 else f"{elapsed_s:.1f} s"
