"""Style that one file keeps or breaks, over every file, and a bad snippet for each rule."""

import warnings

import pytest
import tidy_rules as rules
from hypothesis import HealthCheck, settings
from tidy_repository import package_sources, python_sources
from tidy_source import parse

EVERYWHERE = [
    rules.no_test_has_a_deadline,
    rules.short_files,
    rules.short_functions,
    rules.tests_wait_for_conditions,
]
IN_THE_PACKAGE = [
    rules.absolute_imports,
    rules.clocks_and_chance_in_one_module,
    rules.init_files_only_re_export,
    rules.kafka_codes_have_names,
    rules.locals_have_nouns,
    rules.no_buffer_is_shared_by_threads,
    rules.no_builtin_hash,
    rules.no_print_outside_the_cli,
    rules.parquet_is_opened_in_one_module,
]


def complaints(rule, sources):
    return sorted({f"{source.path}:{line}: {text}" for source in sources for line, text in rule(source)})


@pytest.mark.parametrize("rule", EVERYWHERE, ids=lambda rule: rule.__name__)
def test_every_python_file_keeps(rule):
    assert complaints(rule, python_sources()) == []


def test_files_that_near_the_limit_are_named():
    for source in python_sources():
        if warning := rules.long_file(source):
            warnings.warn(warning, stacklevel=1)


def test_a_warning_begins_behind_400_lines():
    assert not rules.long_file(parse("x = 1\n" * 400, "tidelog.log.x"))
    assert "401 lines" in rules.long_file(parse("x = 1\n" * 401, "tidelog.log.x"))


@pytest.mark.parametrize("rule", IN_THE_PACKAGE, ids=lambda rule: rule.__name__)
def test_the_package_keeps(rule):
    assert complaints(rule, package_sources()) == []


def test_property_tests_run_without_deadlines():
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def function_of(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


BAD = [
    (rules.short_files, "tidelog.log.x", "x = 1\n" * 501),
    (rules.short_functions, "tidelog.log.x", function_of(71)),
    (rules.short_functions, "tidelog.log.x", "async " + function_of(71)),
    (rules.no_test_has_a_deadline, "tests.x", "from hypothesis import settings\n@settings(deadline=200)\ndef f(): ..."),
    (rules.no_test_has_a_deadline, "tests.x", "from hypothesis import settings as s\nquick = s(deadline=None)"),
    (rules.no_test_has_a_deadline, "tests.x", "import hypothesis as h\nh.settings(suppress_health_check=[])"),
    (rules.no_test_has_a_deadline, "tests.x", "from hypothesis import settings\nsettings.load_profile('ci')"),
    (rules.tests_wait_for_conditions, "tests.x", "import time\nwhile busy():\n    time.sleep(0.1)"),
    (rules.tests_wait_for_conditions, "tests.x", "from time import sleep\nsleep(1)"),
    (rules.tests_wait_for_conditions, "tests.x", "import asyncio\nasync def f(): await asyncio.sleep(0.01)"),
    (rules.tests_wait_for_conditions, "tests.x", "while not sealed: pass"),
    (rules.absolute_imports, "tidelog.log.x", "from .errors import TidelogError"),
    (rules.absolute_imports, "tidelog.log.x", "from . import errors"),
    (rules.kafka_codes_have_names, "tidelog.log.x", "class E(TidelogError, kafka_code=3): ..."),
    (rules.kafka_codes_have_names, "tidelog.broker.x", "answer = {'error_code': -1}"),
    (rules.locals_have_nouns, "tidelog.log.x", "def f():\n    one = 1\n\n\n    return one"),
    (rules.locals_have_nouns, "tidelog.log.x", "def f(known):\n\n\n    return known"),
    (rules.locals_have_nouns, "tidelog.log.x", "async def f():\n    for found in g():\n\n\n        print(found)"),
    (rules.locals_have_nouns, "tidelog.log.x", "def f():\n    one = 1\n\n\n    return [one for x in y]"),
    (rules.locals_have_nouns, "tidelog.log.x", "def f():\n    one = 1\n    def g():\n\n        return one"),
    (rules.locals_have_nouns, "tidelog.log.x", "class A:\n    def f(self):\n        one = 1\n\n\n        return one"),
    (rules.no_builtin_hash, "tidelog.log.x", "p = hash(key) % n"),
    (rules.no_builtin_hash, "tidelog.log.x", "sorted(keys, key=hash)"),
    (rules.no_print_outside_the_cli, "tidelog.jobs.retention", "print('done')"),
    (rules.no_print_outside_the_cli, "tidelog.climate", "print('done')"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "import time\nnow = time.time()"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "import time as t\nt.sleep(1)"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "import time\ndef f(clock=time.monotonic): ..."),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "from time import time_ns"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "from time import perf_counter as tick"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "import datetime\ndatetime.datetime.now()"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "import datetime as dt\ndt.datetime.utcnow()"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "from datetime import UTC, datetime\ndatetime.now(UTC)"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "def f():\n    import random"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "from random import Random"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "from uuid import uuid4"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "import secrets"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "import os\nos.urandom(8)"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "import numpy as np\nnp.random.default_rng()"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "from numpy import random"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.clocks", "import uuid\nuuid.uuid4()"),
    (rules.no_buffer_is_shared_by_threads, "tidelog.log.x", "_SCRATCH = bytearray(5)"),
    (rules.no_buffer_is_shared_by_threads, "tidelog.log.x", "_SCRATCH: Final = memoryview(bytearray(5))"),
    (rules.parquet_is_opened_in_one_module, "tidelog.log.x", "import pyarrow.parquet as pq\npq.read_table(f)"),
    (rules.parquet_is_opened_in_one_module, "tidelog.log.x", "import pyarrow.parquet as pq\nf = pq.ParquetFile(s)"),
    (rules.parquet_is_opened_in_one_module, "tidelog.log.x", "from pyarrow.parquet import write_table"),
    (rules.parquet_is_opened_in_one_module, "tidelog.jobs.x", "import pyarrow.dataset as ds\nds.dataset(f)"),
    (rules.init_files_only_re_export, "tidelog.log", '"""Doc."""\nVERSION = 1'),
    (rules.init_files_only_re_export, "tidelog.log", '"""Doc."""\ndef __getattr__(name): ...'),
    (rules.init_files_only_re_export, "tidelog.log", '"""Doc."""\n"""Another."""'),
    (rules.init_files_only_re_export, "tidelog.log", "try:\n    import a\nexcept ImportError:\n    import b"),
    (rules.init_files_only_re_export, "tidelog.log", "if TYPE_CHECKING:\n    X = int"),
    (rules.init_files_only_re_export, "tidelog", "_LAZY = dict(Lake='tidelog.log.lake')"),
    (rules.init_files_only_re_export, "tidelog", "LIMIT = 1"),
    (rules.init_files_only_re_export, "tidelog", "def helper(): ..."),
]
GOOD = [
    (rules.short_files, "tidelog.log.x", "x = 1\n" * 500),
    (rules.short_functions, "tidelog.log.x", function_of(70)),
    (
        rules.no_test_has_a_deadline,
        "tests.x",
        "from hypothesis import settings\nfew = settings(max_examples=9)",
    ),
    (rules.no_test_has_a_deadline, "tests.x", "def settings(deadline): ...\nsettings(deadline=1)"),
    (rules.tests_wait_for_conditions, "tests.x", "import asyncio\nasync def f(): await asyncio.sleep(0)"),
    (rules.tests_wait_for_conditions, "tests.x", "while step(): pass"),
    (rules.tests_wait_for_conditions, "tests.x", "clock.sleep(1)"),
    (rules.tests_wait_for_conditions, "tidelog.log.base.clock", "import time\ntime.sleep(1)"),
    (rules.no_buffer_is_shared_by_threads, "tidelog.log.x", "SIZE = 5\ndef f(): return bytearray(SIZE)"),
    (rules.absolute_imports, "tidelog.log.x", "from tidelog.log.base.errors import TidelogError"),
    (rules.kafka_codes_have_names, "tidelog.log.x", "x = {'error_code': 0} | dict(kafka_code=KafkaCode.NONE)"),
    (rules.locals_have_nouns, "tidelog.log.x", "def f():\n    one = 1\n\n    return one"),
    (rules.locals_have_nouns, "tidelog.log.x", "def f():\n    known_ids = g()\n\n\n    return known_ids, self.known"),
    (
        rules.locals_have_nouns,
        "tidelog.log.x",
        "def f():\n    x = [one for one in y]\n\n\n    return {one for one in x}",
    ),
    (rules.locals_have_nouns, "tidelog.log.x", "def f():\n    g(lambda one: one)\n\n\n    g(lambda one: one)"),
    (rules.no_builtin_hash, "tidelog.log.x", "self.hash(key); key.hash; 'hash(x)'"),
    (rules.no_builtin_hash, "tidelog.log.x", "class A:\n    def __hash__(self): return hash(self.a)"),
    (rules.no_print_outside_the_cli, "tidelog.cli.main", "print('done')"),
    (rules.no_print_outside_the_cli, "tidelog.jobs.retention", "console.print('done')"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.base.clock", "import time, uuid\ntime.time(), uuid.uuid4()"),
    (
        rules.clocks_and_chance_in_one_module,
        "tidelog.log.x",
        "from datetime import datetime\ndatetime(2024, 1, 1)",
    ),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "clock.time(); self.time.sleep(1); clock.sleep(1)"),
    (rules.clocks_and_chance_in_one_module, "tidelog.log.x", "import time\ntime.strftime('%Y', t)"),
    (
        rules.parquet_is_opened_in_one_module,
        "tidelog.log.base.parquet_checksums",
        "import pyarrow.parquet as pq\npq.ParquetFile(s)",
    ),
    (
        rules.parquet_is_opened_in_one_module,
        "tidelog.log.x",
        "import pyarrow.parquet as pq\ndef f(file: pq.ParquetFile): pq.ParquetWriter(file)",
    ),
    (
        rules.init_files_only_re_export,
        "tidelog.log",
        '"""Doc."""\nfrom tidelog.log.lake import Lake\n__all__ = []',
    ),
    (rules.init_files_only_re_export, "tidelog", "if TYPE_CHECKING:\n    from tidelog.log.lake import Lake"),
    (rules.init_files_only_re_export, "tidelog", "_LAZY: dict[str, str] = {'Lake': 'tidelog.log.lake'}"),
    (rules.init_files_only_re_export, "tidelog", "def __getattr__(name): ...\ndef __dir__(): ..."),
]


def snippet(module: str, text: str, rule):
    return parse(text, module, "__init__.py" if rule is rules.init_files_only_re_export else "")


@pytest.mark.parametrize(("rule", "module", "text"), BAD)
def test_a_rule_finds_what_breaks_it(rule, module, text):
    assert list(rule(snippet(module, text, rule)))


@pytest.mark.parametrize(("rule", "module", "text"), GOOD)
def test_a_rule_leaves_alone_what_keeps_it(rule, module, text):
    assert list(rule(snippet(module, text, rule))) == []


def test_every_rule_has_a_bad_snippet():
    assert {rule for rule, _, _ in BAD} == {*EVERYWHERE, *IN_THE_PACKAGE}
