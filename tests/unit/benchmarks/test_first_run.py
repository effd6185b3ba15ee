"""A newcomer's commands, timed: whose caches count, what is asked of a part, and the table."""

import os
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import first_run
import pytest
from first_run import Part


def test_the_callers_caches_do_not_count_and_its_settings_do(tmp_path: Path) -> None:
    caller = tmp_path / "caller"
    (caller / ".config/pip").mkdir(parents=True)
    (caller / ".config/pip/pip.conf").touch()
    given = {
        "HOME": str(caller),
        "PATH": "/bin",
        "PIP_CACHE_DIR": "/cache",
        "UV_CACHE_DIR": "/cache",
        "PIP_INDEX_URL": "https://a.example",
        "SPARK_HOME": "/spark",
    }
    assert first_run.environment(tmp_path / "home", given) == {
        "HOME": str(tmp_path / "home"),
        "JAVA_TOOL_OPTIONS": f"-Duser.home={tmp_path / 'home'}",
        "PATH": "/bin",
        "PIP_CONFIG_FILE": str(caller / ".config/pip/pip.conf"),
        "PIP_INDEX_URL": "https://a.example",
    }


@pytest.mark.parametrize(
    ("part", "failed"),
    [
        (Part("demo", 1, 179), []),
        (Part("demo", 1, 181), ["more than 180 s"]),
        (Part("demo", 2, 44), []),
        (Part("demo", 2, 46), ["more than 45 s"]),
        (Part("demo", 3, 46), ["more than 45 s"]),
        (Part("demo-kafka", 1, 500), []),
        (Part("demo", 1, 5, code=2), ["exit code 2"]),
        (Part("demo", 1, 100, steps={1: 5.0, 2: 10.0, 3: 64.0}), []),
        (Part("demo", 1, 100, steps={1: 5.0, 2: 10.0, 3: 66.0}), ["first result later than 60 s"]),
    ],
)
def test_what_is_asked_of_a_part(part: Part, failed: list[str]) -> None:
    assert part.failed == failed


def test_the_steps_of_a_demo_are_timed(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        "demo:\n\t@printf ' 1  A step\\n    flights\\n 2  Spark starts\\n10  A step\\n2 of them\\n'; exit 3\n"
    )
    part = Part("demo", 1)
    first_run.run_part(part, tmp_path, os.environ)
    assert sorted(part.steps) == [1, 2, 10]
    assert part.code != 0
    assert part.took_s >= max(part.steps.values())


def test_the_jars_that_ivy_fetched(tmp_path: Path) -> None:
    folder = tmp_path / ".ivy2/cache/io.delta/delta"
    folder.mkdir(parents=True)
    (folder / "ivydata-1.properties").write_text(
        "artifact\\:delta\\#jar\\#jar\\#1.location=https\\://a.example/delta-1.jar\n"
        "artifact\\:ivy\\#ivy\\#xml\\#1.location=https\\://a.example/delta-1.pom\n"
        "artifact\\:x\\#jar\\#jar\\#2.location=/jars/x.jar\n"
        "artifact\\:delta\\#jar\\#jar\\#1.exists=true\n"
    )
    assert first_run.jar_urls(tmp_path) == {"https://a.example/delta-1.jar", "https://a.example/delta-1.pom"}


def test_files_are_downloaded_whole(tmp_path: Path) -> None:
    for name, size in (("a", 3_000_000), ("b", 5)):
        (tmp_path / name).write_bytes(b"x" * size)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        assert first_run.download([f"{address}/a", f"{address}/b"], {})[0] == 3_000_005
        server.shutdown()


def test_the_packages_of_an_environment_are_asked_of_pip(tmp_path: Path) -> None:
    """A Python that is pip: it freezes two packages, and reports where those that it is asked for are."""
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "if 'freeze' in sys.argv: print('a==1\\nb==2')\n"
        "else: print(json.dumps({'install': [{'download_info': {'url': 'https://x/' + n}} for n in sys.argv[-2:]]}))\n"
    )
    python.chmod(0o755)
    assert first_run.package_urls(python, os.environ) == {"https://x/a==1", "https://x/b==2"}


def test_the_table() -> None:
    parts = [Part("demo", 1, 150.4, steps={1: 90, 3: 101}), Part("demo", 2, 40), Part("demo-kafka", 1, 61)]
    assert first_run.table(parts, (600 << 20, 33.3)) == [
        "| command | seconds | may take | first result after Spark's start |",
        "|---|---|---|---|",
        "| `make demo`, fresh clone, empty caches | 150 | 180 s | 11 s |",
        "| `make demo`, time 2 | 40 | 45 s |  |",
        "| `make demo-kafka` | 61 |  |  |",
        "| the same 600 MiB of packages and jars, only downloaded | 33 |  |  |",
    ]
