"""The journal of a run: its events in order, their digest, and what was wrong."""

import hashlib
from dataclasses import KW_ONLY, dataclass, field

from sim_scheduler import Process, Scheduler


@dataclass
class Journal:
    """Equal runs have equal events; `trace` keeps them as lines for people to read."""

    scheduler: Scheduler
    _: KW_ONLY
    trace: list[str] | None = None
    violations: list[str] = field(default_factory=list)
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def note(self, event: str, process: Process | None = None) -> None:
        """Remember an event."""
        actor = self.scheduler.current.name
        line = f"{self.scheduler.now:.6f} {process.name + '/' if process else ''}{actor}: {event}"
        self._digest.update(line.encode())
        if self.trace is not None:
            self.trace.append(line)

    def killed(self, process: Process) -> None:
        """A process was killed."""
        self.note(f"KILLED {process.name}")

    def called(self, process: Process, method: str, path: str, result: object) -> None:
        """A process called its store."""
        raise NotImplementedError

    def violate(self, what: str) -> None:
        line = f"{self.scheduler.now:.3f} {self.scheduler.current.name}: {what}"
        self.violations.append(line)
        self.note(f"VIOLATION {what}")

    def digest(self) -> str:
        """One text for the whole run."""
        return self._digest.hexdigest()
