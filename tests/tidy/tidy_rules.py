"""The style rules that a single file keeps or breaks: each is a function from a source to (line, complaint)."""

import ast
from collections.abc import Iterator

from tidy_source import Source, calls, imports, used_names

MAX_FILE_LINES = 500
# From here on a file is named, so that it is split by an idea before the limit forces a cut.
LONG_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
# Names that say nothing of what they hold, and over how many lines such a one may live.
VAGUE_NAMES = ("found", "known", "one")
VAGUE_LINES = 3
CLOCK_MODULE = "tidelog.log.base.clock"
# Where Hypothesis is configured, for every layer of tests.
PROFILE_FILE = "tests/conftest.py"
# Where tests may let time pass, and why.
SLEEPING_TESTS = {
    "tests/contract/processes/test_producer_processes.py": "a frozen process must be frozen for some time",
    "tests/contract/registry/test_registry_maintained.py": "a process is killed anywhere in its work",
    "tests/reliability/chaos_processes.py": "a run lasts as long as it is asked to",
    "tests/reliability/chaos_life.py": "workers pause for as long as the seed says",
    "tests/simulation/brokers_sim_bugs.py": "a simulated loop's time passes at once",
    "tests/simulation/brokers_sim_consumers.py": "a simulated loop's time passes at once",
    "tests/simulation/brokers_sim_network.py": "a simulated loop's time passes at once",
    "tests/simulation/brokers_sim_producers.py": "a simulated loop's time passes at once",
    "tests/simulation/brokers_sim_transactions.py": "a simulated loop's time passes at once",
    "tests/simulation/brokers_sim_wire.py": "a simulated loop's time passes at once",
    "tests/support/fault_proxy.py": "a store that is slow",
    "tests/support/postgres_sources.py": "a worker pauses for as long as its task says",
    "tests/support/versitygw.py": "a server may start, or fail to, within a time",
    "tests/support/waiting.py": "waits for conditions",
    "tests/unit/log/follow/test_fetch_loop_helpers.py": "helpers that are slow to begin",
}
# Packages whose names are loaded when they are first used.
FRONT_DOORS = ("tidelog", "tidelog.clients")

CLOCKS = (
    "asyncio.sleep",
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "pandas.Timestamp.now",
    "pandas.Timestamp.today",
    "pandas.Timestamp.utcnow",
    "time.clock_gettime",
    "time.clock_gettime_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.perf_counter",
    "time.perf_counter_ns",
    "time.process_time",
    "time.process_time_ns",
    "time.sleep",
    "time.thread_time",
    "time.thread_time_ns",
    "time.time",
    "time.time_ns",
)
SEALED_MODULE = "tidelog.log.base.parquet_checksums"
PARQUET_FILES = (
    "pyarrow.dataset",
    *(f"pyarrow.parquet.{name}" for name in ("ParquetDataset", "read_metadata", "read_table", "write_table")),
)
CHANCE = (
    "numpy.random",
    "os.getrandom",
    "os.urandom",
    "pyarrow.compute.random",
    "random",
    "secrets",
    "uuid.uuid1",
    "uuid.uuid4",
)

_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda),
    *(ast.DictComp, ast.GeneratorExp, ast.ListComp, ast.SetComp),
)

Complaints = Iterator[tuple[int, str]]


def short_files(source: Source) -> Complaints:
    lines = len(source.text.splitlines())
    if lines > MAX_FILE_LINES:
        yield lines, f"the file has {lines} lines, over {MAX_FILE_LINES}: split it by request or rule"


def long_file(source: Source) -> str:
    """A warning about a file that nears the limit, or an empty text."""
    lines = len(source.text.splitlines())
    return f"{source.path} has {lines} lines, over {LONG_FILE_LINES}" if lines > LONG_FILE_LINES else ""


def short_functions(source: Source) -> Complaints:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                yield (
                    node.lineno,
                    f"{node.name} has {lines} lines, over {MAX_FUNCTION_LINES}: split it",
                )


def locals_have_nouns(source: Source) -> Complaints:
    """Locals and parameters whose names say nothing, and that live over several lines of a function."""
    for function in source.nodes:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for name in VAGUE_NAMES:
                uses = [*_uses(function, name)]
                lines = sorted(use.lineno for use in uses)
                if any(map(_binds, uses)) and lines[-1] - lines[0] >= VAGUE_LINES:
                    yield lines[0], f"{name} of {function.name} lives to line {lines[-1]}: name it by its noun"


def _uses(scope: ast.AST, name: str) -> Iterator[ast.Name | ast.arg]:
    """Where a function uses a name of its own: not in a comprehension or an inner function that binds it again."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.Name | ast.arg):
            if name == (node.id if isinstance(node, ast.Name) else node.arg):
                yield node
            continue
        uses = [*_uses(node, name)]
        if not (isinstance(node, _SCOPES) and any(map(_binds, uses))):
            yield from uses


def _binds(use: ast.Name | ast.arg) -> bool:
    return isinstance(use, ast.arg) or isinstance(use.ctx, ast.Store)


def kafka_codes_have_names(source: Source) -> Complaints:
    for node in source.nodes:
        told: list[tuple[object, ast.expr]] = []
        if isinstance(node, ast.keyword):
            told = [(node.arg, node.value)]
        elif isinstance(node, ast.Dict):
            told = [
                (key.value, value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            ]
        for name, value in told:
            number = value.operand if isinstance(value, ast.UnaryOp) else value
            if name in ("kafka_code", "error_code") and isinstance(number, ast.Constant) and number.value:
                yield value.lineno, f"{name} is a number: take it from KafkaCode by its name"


def no_print_outside_the_cli(source: Source) -> Complaints:
    if _within(source.module, "tidelog.cli"):
        return
    for line in _builtin(source, "print"):
        yield line, "print: only the CLI talks to people"


def no_builtin_hash(source: Source) -> Complaints:
    methods = [node for node in source.nodes if isinstance(node, ast.FunctionDef) and node.name == "__hash__"]
    own = {line for node in methods for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    for line in _builtin(source, "hash"):
        if line in own:  # a value's place in this process's dicts
            continue
        yield line, "hash() differs from process to process: nothing may be routed by it"


def clocks_and_chance_in_one_module(source: Source) -> Complaints:
    if source.module == CLOCK_MODULE:
        return
    for line, name in used_names(source):
        for banned in (*CLOCKS, *CHANCE):
            if _within(name, banned):
                yield line, f"{banned}: only {CLOCK_MODULE} reads it, take a Clock or an Ids"


def no_test_has_a_deadline(source: Source) -> Complaints:
    """Hypothesis' deadlines and its check of speed fail tests on a busy machine; its one profile has neither."""
    if source.path == PROFILE_FILE:
        return
    for call, name in calls(source):
        given = {keyword.arg for keyword in call.keywords}
        if name == "hypothesis.settings" and given & {"deadline", "suppress_health_check"}:
            yield call.lineno, f"a deadline or health check of its own: {PROFILE_FILE} decides for all tests"
        if name in ("hypothesis.settings.register_profile", "hypothesis.settings.load_profile"):
            yield call.lineno, f"a profile of its own: {PROFILE_FILE} has the only one"


def tests_wait_for_conditions(source: Source) -> Complaints:
    """Tests that sleep are slow, or fail on a busy machine; those that loop without an end hang instead of failing."""
    if not source.path.startswith("tests/"):
        return
    for call, name in calls(source):
        yields = name == "asyncio.sleep" and ast.unparse(call.args[0]) == "0"
        if name in ("time.sleep", "asyncio.sleep") and not yields and source.path not in SLEEPING_TESTS:
            yield call.lineno, f"{name}: wait for a condition with support.waiting, or say why in SLEEPING_TESTS"
    for node in source.nodes:
        idle = isinstance(node, ast.While) and all(isinstance(statement, ast.Pass) for statement in node.body)
        if idle and not any(isinstance(part, ast.Call) for part in ast.walk(node.test)):
            yield node.lineno, "a loop that does nothing waits for ever: wait with support.waiting"


def parquet_is_opened_in_one_module(source: Source) -> Complaints:
    """Other ways to open a file look at no checksum, and leave none. The types may be named."""
    if source.module == SEALED_MODULE:
        return
    opened = [(line, name) for line, name in used_names(source) if any(_within(name, way) for way in PARQUET_FILES)]
    opened += [(call.lineno, name) for call, name in calls(source) if name == "pyarrow.parquet.ParquetFile"]
    for line, name in opened:
        yield line, f"{name}: only {SEALED_MODULE} opens Parquet files, and checks them"


def no_buffer_is_shared_by_threads(source: Source) -> Complaints:
    """A module's buffer is one for all threads of the process: two that use it mix up their bytes."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            called = {_called(part) for part in ast.walk(node.value)}
            if called & {"bytearray", "memoryview"}:
                yield node.lineno, "a module's buffer is shared by all threads: keep it where it is used"


def _called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def absolute_imports(source: Source) -> Complaints:
    for line, name in imports(source):
        if name.startswith("."):
            yield line, f"import of {name}: write the full name"


def init_files_only_re_export(source: Source) -> Complaints:
    if not source.is_package:
        return
    for node in source.tree.body[ast.get_docstring(source.tree) is not None :]:
        if not (_is_re_export(node) or (source.module in FRONT_DOORS and _is_lazy_re_export(node))):
            yield node.lineno, "an __init__.py holds a docstring, imports and __all__, nothing else"


def _is_re_export(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        typing_only = isinstance(node.test, ast.Name | ast.Attribute) and "TYPE_CHECKING" in ast.unparse(node.test)
        return typing_only and not node.orelse and all(map(_is_re_export, node.body))
    return isinstance(node, ast.Import | ast.ImportFrom) or _assigned(node) == "__all__"


def _is_lazy_re_export(node: ast.stmt) -> bool:
    """`__getattr__`, `__dir__`, or a private table for them written out as a literal."""
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__getattr__", "__dir__")
    if not _assigned(node).startswith("_"):
        return False
    try:
        ast.literal_eval(node.value)  # type: ignore[attr-defined]
    except ValueError:
        return False
    return True


def _assigned(node: ast.stmt) -> str:
    """The one plain name that a statement assigns to, or ""."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _builtin(source: Source, name: str) -> Iterator[int]:
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node.lineno


def _within(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")
