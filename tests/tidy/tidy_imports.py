"""Which part of tidelog may import which, and what no part may import."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from tidy_source import Source, imports

# These four don't know each other.
STRANGERS = frozenset({"sources", "sinks", "groups", "retention"})
# A part imports parts of a lower layer, itself, and, in a layer of friends, its own layer.
LAYERS: tuple[frozenset[str], ...] = (
    # The log's ground (errors, clocks), on which the formats of schemas stand: they know nothing of a lake.
    frozenset({"log.base"}),
    frozenset({"schemas"}),
    frozenset({"log"}),
    frozenset({"transactions", "cluster", "access"}),
    frozenset({"cuts"}),
    STRANGERS,
    frozenset({"check"}),
    # What can be asked of a lake, and what a process has that stays up, for the faces below this line.
    frozenset({"operations"}),
    frozenset({"server"}),
    frozenset({"clients", "clients.admin", "mirror"}),
    frozenset({"commands", "broker", "registry"}),
    frozenset({"pyspark_tidelog", "jobs", "cli", "spark", "connect", "console"}),
    # The front door: `tidelog` itself, and what users import by a name of its own, such as `tidelog.admin`.
    frozenset({"tidelog", "schema_registry", "streams"}),
)
# The floors of `tidelog.log`, from the ground up: a folder imports those below it. `lake` and `topic`, where a
# program begins, import all up to "appends", and the two engines import them.
FLOORS = (
    "base", "delta", "storage", "state", "checkpoints", "config", "typed", "records", "segments", "rules",
    "door", "upkeep", "rows", "folds", "appends", "", "group_commit", "follow",
)  # fmt: skip
# What faces speak by: none of it is known where all faces ask.
FACES_LIBRARIES = frozenset(
    {"typer", "click", "rich", "starlette", "uvicorn", "h11", "httpx", "kio", "confluent_kafka", "prometheus_client"}
)
# Rooms for users alone: what else asks what they ask, asks operations.
USERS_ROOMS = frozenset({"clients.admin"})
# Servers, and the folders outside of them that import them, and why.
IMPORT_SERVERS: Mapping[str, Mapping[str, str]] = {
    "broker": {
        "tidelog.cli.broker": "starts brokers",
        "tidelog.cli.serving": "reads the settings of brokers, of which servers of HTTP have some",
    },
    "registry": {"tidelog.cli.serving": "starts registries"},
}
# What commands share, of what each family of them has, and why.
COMMANDS_SHARE: Mapping[str, str] = {
    "tidelog.cli.records": "how records are written and read, and where their schemas are",
    "tidelog.cli.serving": "how servers are started",
}
LAYER = {part: number for number, parts in enumerate(LAYERS) for part in parts}


def part_of(name: str) -> str:
    """The part that a dotted name belongs to, "" for other people's. What is in no part is the front door's."""
    top, _, rest = name.partition(".")
    if top == "pyspark_tidelog":
        return top
    if top != "tidelog":
        return ""
    first, _, rest = rest.partition(".")
    inner = f"{first}.{rest.partition('.')[0]}"
    return next((part for part in (inner, first) if part in LAYER), "tidelog")


def wrong_way_imports(source: Source) -> Iterator[tuple[int, str]]:
    importer = part_of(source.module)
    for line, name in imports(source):
        imported = part_of(name)
        if not imported or imported == importer:
            continue
        if LAYER[imported] > LAYER[importer]:
            yield (
                line,
                f"{importer} imports {name}, further out: move the value type down or wire it outside",
            )
        elif imported in USERS_ROOMS and importer != "tidelog":
            yield line, f"{importer} imports {name}, which is for users: call operations, and translate there"
        elif importer in STRANGERS and imported in STRANGERS:
            yield line, f"{importer} imports {name}: these parts don't know each other, put a port in tidelog.log"


def words_of_faces(source: Source) -> Iterator[tuple[int, str]]:
    """Imports by which operations would speak as a face: Kafka's messages, a command's options, HTTP, metrics."""
    if part_of(source.module) == "operations":
        for line, name in imports(source):
            if name.partition(".")[0] in FACES_LIBRARIES:
                yield line, f"operations import {name}: give a plain value, and let the face translate it"


def imports_of_servers(source: Source) -> Iterator[tuple[int, str]]:
    """Imports of a server by a folder that is no part of it and has no reason."""
    folder = source.module.rpartition(".")[0]
    for line, name in imports(source):
        server = part_of(name)
        if server in IMPORT_SERVERS and part_of(source.module) != server and folder not in IMPORT_SERVERS[server]:
            yield line, f"import of {name}: what others need of it belongs to tidelog.operations or tidelog.server"


def imports_of_commands(source: Source) -> Iterator[tuple[int, str]]:
    """Imports by which a family of commands depends on another one."""
    family = ".".join(source.module.split(".")[:3])
    if family.startswith("tidelog.cli.") and family != "tidelog.cli.main":
        own = tuple(f"{name}." for name in (family, *COMMANDS_SHARE))
        for line, name in imports(source):
            if name.startswith("tidelog.cli.") and not f"{name}.".startswith(own):
                yield line, f"import of {name}: what commands share belongs to a folder that is none's"


def floor_of(name: str, packages: Collection[str]) -> str | None:
    """The part of `tidelog.log` that a dotted name belongs to, "" for names outside of them, None for other parts."""
    if name != "tidelog.log" and not name.startswith("tidelog.log."):
        return None
    folder = name.removeprefix("tidelog.log").lstrip(".").partition(".")[0]
    return folder if f"tidelog.log.{folder}" in packages else ""


def climbing_imports(source: Source, packages: Collection[str]) -> Iterator[tuple[int, str]]:
    """Imports within `tidelog.log` that go up. A package's `__init__.py` may re-export its own modules."""
    importer = floor_of(source.module, packages)
    if importer is None or source.module == "tidelog.log":
        return
    for line, name in imports(source):
        imported = floor_of(name, packages)
        if imported is not None and FLOORS.index(imported) > FLOORS.index(importer):
            yield line, f"log/{importer} imports {name}, which stands above it: move the value down"


def mutual_folders(sources: Iterable[Source]) -> list[tuple[str, str]]:
    """Pairs of folders whose modules import each other; an `__init__.py` may give names of its own folder."""
    by_module = {source.module: source for source in sources}
    known = {
        (source.folder, by_module[module].folder)
        for source in by_module.values()
        for module in modules_of(source, by_module)
        if not by_module[module].is_package
        if not source.is_package or not by_module[module].folder.startswith(f"{source.folder}/")
    }
    return sorted((a, b) for a, b in known if a < b and (b, a) in known)


def bare_folder_imports(source: Source, folders: Collection[str]) -> Iterator[tuple[int, str]]:
    """Imports of a source folder by its folder's name; `import platform` is the standard library's."""
    for line, name in imports(source):
        if name != "platform" and any(f"{name}.".startswith(f"{folder.replace('/', '.')}.") for folder in folders):
            yield line, f"import of {name}, a folder: import the installed package tidelog"


def import_cycle(sources: Iterable[Source]) -> list[str]:
    """Modules that import each other in a circle, the first also last; [] when there is none."""
    by_module = {source.module: source for source in sources}
    graph = {module: set(modules_of(source, by_module)) for module, source in by_module.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def modules_of(source: Source, known: Mapping[str, Source]) -> Iterator[str]:
    """The known modules that a file imports, whole or names of them."""
    for _, name in imports(source):
        while name and name not in known:
            name = name.rpartition(".")[0]
        if name:
            yield name
