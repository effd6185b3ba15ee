"""A simulated lake whose registries register, delete and look, while maintenance compacts their topic."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sim_journal import Journal
from sim_program import UNANSWERED, SimProgram, SimWorld
from sim_scheduler import Process
from sim_storage import Trouble

from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.operations.schemas.deleting import decide_delete_subject
from tidelog.operations.schemas.fold import RegistryState
from tidelog.operations.schemas.registering import Registration, decide_register
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.operations.schemas.settings import decide_config
from tidelog.retention.maintenance import maintain
from tidelog.schemas.base.errors import RegistryError
from tidelog.schemas.base.model import Schema

# All may use these; each registry has others that are its own, which no other one touches.
SHARED = ("a", "b", "c")
# Of which no schema reads another: the first one that comes is the only one.
STRICT = "strict"
SIZES = 6
TOPIC_CONFIG = {
    "cleanup.policy": "compact",
    "delete.retention.ms": "20000",
    "segment.ms": "2000",
    "max.compaction.lag.ms": "2000",
    "min.cleanable.dirty.ratio": "0.01",
    "log.checkpoint.interval": "10",
    "log.min.age.ms": "10000",
    "file.delete.delay.ms": "3000",
}


@dataclass(frozen=True)
class RegistryPlan:
    """What kind of run a seed stands for. Means in seconds."""

    registries: int
    duration_s: float
    pause_s: float
    mishap_s: float
    maintainers: int
    deletes: float  # how often a registry deletes
    trouble: Trouble
    on_disk: bool = False  # processes have clocks of their own

    @staticmethod
    def of(seed: int) -> "RegistryPlan":
        rng = Random(f"registry plan {seed}")
        rough = rng.choice([0.0, 0.3, 1.0])
        return RegistryPlan(
            registries=rng.choice([1, 2, 3, 4]),
            duration_s=rng.uniform(40, 90),
            pause_s=rng.choice([0.5, 1.5]),
            mishap_s=rng.choice([3.0, 8.0]),
            maintainers=rng.choice([0, 1, 1]),
            deletes=rng.choice([0.0, 0.2, 0.4]),
            trouble=Trouble(
                slow=rng.choice([0.0, 0.01]),
                unsent=0.004 * rough,
                lost=0.02 * rough,
                late=0.006 * rough,
                misread=0.01 * rough,
                conflict=0.01 * rough,
                freeze=rng.choice([0.0, 0.0005]),
                freeze_at_put=rng.choice([0.0, 0.02, 0.06]),
            ),
        )


@dataclass
class RegistryJournal(Journal):
    """What registries answered, and what can't be."""

    counts: Counter[str] = field(default_factory=Counter)
    schemas: dict[int, int] = field(default_factory=dict)  # by id: the schema's size
    ids: dict[int, int] = field(default_factory=dict)  # by the size of one in a shared subject
    versions: dict[tuple[str, int], int] = field(default_factory=dict)  # by subject and version: the size
    only: dict[str, int] = field(default_factory=dict)  # of the strict subject: the size

    def called(self, process: Process, method: str, path: str, result: object) -> None:
        if method == "FROZEN":
            self.counts["frozen"] += 1
        if method in ("FROZEN", "put_if_absent", "put", "create", "delete"):
            self.note(f"{process.name}: {method} {path} {result if isinstance(result, str | bool) else ''}")

    def killed(self, process: Process) -> None:
        self.counts["killed"] += 1
        super().killed(process)

    def stored(self, method: str, path: str, data: bytes) -> None:
        """Nothing is read off the bytes: what registries answer must do."""

    def registered(self, subject: str, size: int, number: int, version: int) -> None:
        """A registry said that a subject's version has a schema, with an id."""
        self.counts["registered"] += 1
        self.note(f"{subject} version {version}: size {size} is id {number}")
        places: list[tuple[dict[Any, int], Any, int]] = [
            (self.schemas, number, size),
            (self.versions, (subject, version), size),
        ]
        if subject in SHARED:
            places.append((self.ids, size, number))
        if subject == STRICT:
            places.append((self.only, STRICT, size))
        for known, place, value in places:
            if known.setdefault(place, value) != value:
                self.violate(f"{place} was {known[place]}, and is {value} now")


class RegistryWorld(SimWorld):
    """The registries, and what maintains beside them."""

    history: RegistryJournal

    def __init__(self, seed: int, plan: RegistryPlan, trace: list[str] | None = None) -> None:
        super().__init__(Random(f"registry run {seed}"), plan)
        self.history = RegistryJournal(self.scheduler, trace=trace)
        self.at_rest: set[str] = set()  # processes that write no more
        self.closing = False  # none of them does
        self.folds: dict[str, list[tuple[Any, ...]]] = {}

    def launch(self, name: str, role: Callable[["Program"], None], delay: float = 0.0) -> None:
        """Start a process that plays a role, after `delay` seconds."""
        self.start(Program(self, name, role), delay)


class Program(SimProgram):
    """A process that plays one role."""

    def __init__(self, world: RegistryWorld, name: str, role: Callable[["Program"], None]) -> None:
        super().__init__(world, name)
        self.role = role

    def run(self) -> None:
        """Open the lake and play the role."""
        self.open()
        self.role(self)


def maintainer(program: Program) -> None:
    """Runs maintenance over and over."""
    world = program.world
    while not world.ending:
        program.pause(world.rng.uniform(1, 6))
        with suppress(*UNANSWERED):
            maintain(program.lake)
            world.history.counts["maintained"] += 1


def registry(program: Program) -> None:
    """Answers requests until the world ends; then says what it knows."""
    _Registry(program).run()


class _Registry:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._world = program.world
        self._history: RegistryJournal = program.world.history
        self._log = RegistryLog(program.lake)
        self._own = 0
        self._live: list[int] = []  # versions of the subject that is its own, as far as it knows

    @property
    def _mine(self) -> str:
        return f"own-{self._program.process.name}-{self._own}"

    def run(self) -> None:
        world, rng = self._world, self._world.rng
        while not world.ending:
            self._program.pause(rng.uniform(0.2, 1.8) * world.plan.pause_s)
            if rng.random() < world.plan.deletes:
                self._delete()
            else:
                rng.choice(
                    [self._register, self._register, self._register_own, self._look, self._configure, self._race]
                )()
        world.at_rest.add(self._program.process.name)
        while not world.closing:
            self._program.pause(0.5)
        world.folds[self._program.process.name] = self._program.until_it_answers(lambda: self._log.look(dump))

    def _register(self) -> None:
        with suppress(*UNANSWERED):
            self._registered(self._world.rng.choice(SHARED))

    def _register_own(self) -> None:
        try:
            self._live.append(self._registered(self._mine))
        except UNANSWERED:
            self._next_own()

    def _race(self) -> None:
        """All want another schema in one subject: one gets it, and the others' are refused and use no id."""
        size = SIZES + 1 + self._world.number() % 1_000
        try:
            self._registered(STRICT, size)
        except RegistryError as error:
            if error.code != 40901:
                self._history.violate(f"size {size} was refused as {error}")
            self._history.counts["refused"] += 1
        except UNANSWERED:
            pass

    def _registered(self, subject: str, size: int | None = None) -> int:
        size = size or self._world.rng.randrange(SIZES) + 1
        wanted = Registration(subject, Schema(f'{{"type":"fixed","name":"f{size}","size":{size}}}'))

        def rule(state: RegistryState) -> Any:
            found = decide_register(state, wanted)
            return found.version, found.records

        made = self._log.decide(rule)
        self._history.registered(subject, size, made.id, made.version)
        return int(made.version)

    def _delete(self) -> None:
        """Delete what is its own, softly and then for good: no other process touches it, so it can't be refused."""
        if not self._live:
            return
        try:
            for permanent in (False, True):
                rule = self._rule(permanent=permanent)
                found = self._log.decide(rule)
                self._history.counts["deleted"] += 1
                if sorted({*found}) != sorted({*self._live}):
                    self._history.violate(f"{self._mine} has versions {self._live}, and {found} were deleted")
            self._next_own()
        except RegistryError as error:
            self._history.violate(f"{self._mine} can't be deleted: {error}")
        except UNANSWERED:
            self._next_own()

    def _rule(self, *, permanent: bool) -> Callable[[RegistryState], Any]:
        return lambda state: decide_delete_subject(state, self._mine, permanent=permanent)

    def _configure(self) -> None:
        change = {"compatibility": "NONE", "compatibilityGroup": f"g{self._world.number()}"}
        subject = self._world.rng.choice(SHARED)
        with suppress(*UNANSWERED):
            self._log.decide(lambda state: decide_config(state, subject, change))

    def _look(self) -> None:
        """What any registry had said before the look, it must show; subjects that all share lose nothing."""
        known = dict(self._history.versions)
        with suppress(*UNANSWERED):
            found = {(one[0], one[1], one[3], one[4]) for one in self._log.look(dump) if len(one) == 5}
            for (subject, version), size in known.items():
                if subject in SHARED and (subject, version, False, size) not in found:
                    self._history.violate(f"version {version} of {subject} is not seen")
            self._history.counts["looked"] += 1

    def _next_own(self) -> None:
        self._own += 1
        self._live = []


def dump(state: RegistryState) -> list[tuple[Any, ...]]:
    """Versions (subject, version, id, deleted, size), settings, and the next id."""
    versions = [
        (one.subject, one.version, one.id, one.deleted, int(one.schema.text.rpartition(":")[2].rstrip("}")))
        for subject in state.subjects(":*:", deleted=True)
        for one in state.versions(subject, deleted=True)
    ]
    settings = sorted((str(subject), str(config)) for subject, config in state.configs.items())
    return [*versions, *settings, ("next id", state.next_id())]


def created(program: Program) -> None:
    """Make the topic, with rules so small that a run of a minute sees compactions and trims."""
    program.lake.create_topic(SCHEMAS_TOPIC, 1, TOPIC_CONFIG)
    log = RegistryLog(program.lake)
    log.decide(lambda state: decide_config(state, None, {"compatibility": "NONE"}))
    log.decide(lambda state: decide_config(state, STRICT, {"compatibility": "BACKWARD"}))
