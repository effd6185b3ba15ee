"""The images' recipe: what hadolint says, no root, nothing from elsewhere, commands and health checks that are there.

`make compat` runs its steps, and starts what they make.
"""

import json
import re
import subprocess
import tomllib
from importlib.machinery import SourceFileLoader

import pytest
from support.cli_calls import done
from support.image_recipe import RECIPE, ROOT, environment_of, stages, steps, steps_of
from support.tools import require

STAGES = stages(RECIPE.read_text())
IMAGES = ("tidelog", "spark")
ENTRY = RECIPE.with_name("spark-entrypoint")


def test_hadolint_has_nothing_to_say():
    lint = subprocess.run([require("hadolint"), "--no-color", RECIPE], capture_output=True, text=True, check=False)
    assert (lint.returncode, lint.stdout) == (0, "")


def test_stages_begin_with_a_base_of_a_certain_release_or_with_one_another():
    bases = {stage.base for stage in STAGES.values()} - STAGES.keys()
    assert len(bases) == 1
    assert re.fullmatch(r"docker\.io/library/debian:bookworm-\d{8}-slim", *bases)
    assert [*STAGES][-1] == "tidelog"  # what is built where no target is named


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_runs_as_a_user_by_number_and_hears_signals(image):
    user = STAGES[image].last("USER").rest
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)  # Kubernetes can tell from a number that it is not root
    entry = STAGES[image].last("ENTRYPOINT").words
    assert entry[0] == "/usr/bin/tini"  # as process 1 a program without handlers would hear no signal
    assert isinstance(json.loads(STAGES[image].last("CMD").rest), list)


def test_no_step_brings_what_is_not_of_this_repository_or_of_a_registry_of_packages():
    for step in steps(RECIPE.read_text()):
        assert step.word in {"ARG", "FROM", "RUN", "ENV", "WORKDIR", "COPY", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL",
                             "HEALTHCHECK", "ENTRYPOINT", "CMD"}  # fmt: skip
        if step.word == "COPY" and "from" not in step.options:
            assert all((ROOT / source).exists() for source in step.words[:-1])
        if step.word == "RUN":
            assert not re.search(r"curl|wget|https?://|git clone", step.rest)


@pytest.mark.parametrize("image", IMAGES)
def test_the_last_stages_have_neither_compiler_nor_what_a_build_left(image):
    installed = " ".join(step.rest for step in steps_of(STAGES, image) if step.word == "RUN")
    assert "gcc" not in installed
    assert "python3-venv" not in installed
    for step in steps_of(STAGES, image):
        if step.word == "RUN" and "apt-get install" in step.rest:
            assert "--no-install-recommends" in step.rest
            assert "rm -rf /var/lib/apt/lists/*" in step.rest


def test_the_extras_that_are_installed_are_there():
    text = " ".join(step.rest for stage in STAGES.values() for step in stage.steps)
    given = {extra for found in re.findall(r'"/src\[([^\]]+)\]"', text) for extra in found.split(",")}
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert given == {"broker", "registry", "typed", "connect", "console", "otel", "spark"}
    assert given <= known.keys()


def test_the_container_starts_a_command_that_is_there_and_asks_its_health():
    words = STAGES["tidelog"].last("CMD").words
    said = done("broker", "start", "--help", env={"COLUMNS": "200"}).stdout
    assert words[:2] == ["broker", "start"]
    assert all(word in said for word in words if word.startswith("--"))
    bound = {words[at + 1] for at, word in enumerate(words) if word in ("--listener", "--metrics")}
    exposed = STAGES["tidelog"].last("EXPOSE").words
    # From outside, a container's loopback is not reached.
    assert {f"0.0.0.0:{port}" for port in exposed} == bound
    assert re.search(r"http://127\.0\.0\.1:(\d+)/healthz", STAGES["tidelog"].last("HEALTHCHECK").rest)[1] in exposed


def test_sparks_home_is_where_its_stage_installs_it():
    variables = {}
    for step in steps_of(STAGES, "spark"):
        if step.word == "ENV":
            variables |= environment_of(step)
    assert variables["SPARK_HOME"].startswith("/opt/tidelog/lib/python3.11/")  # bookworm's Python
    assert variables["PYSPARK_PYTHON"] == "/opt/tidelog/bin/python3"


@pytest.fixture(scope="module")
def entrypoint():
    return SourceFileLoader("spark_entrypoint", str(ENTRY)).load_module()


def test_a_driver_is_submitted_to_itself(entrypoint):
    environment = {"SPARK_HOME": "/spark", "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.7"}
    given = ["--properties-file", "/opt/p", "local:///job.py", "--every", "5m"]
    line = entrypoint.command_of(["driver", *given], environment)
    bind = ["--conf", "spark.driver.bindAddress=10.0.0.7"]
    assert line == ["/spark/bin/spark-submit", *bind, "--deploy-mode", "client", *given]


def test_an_executor_has_its_options_in_order_and_its_places_from_the_environment(entrypoint):
    environment = {
        "SPARK_HOME": "/spark", "JAVA_HOME": "/java", "SPARK_CONF_DIR": "/opt/spark/conf",
        "SPARK_EXECUTOR_MEMORY": "1024m", "SPARK_EXECUTOR_ID": "7", "SPARK_EXECUTOR_CORES": "2",
        "SPARK_EXECUTOR_POD_IP": "10.1", "SPARK_EXECUTOR_POD_NAME": "exec-7", "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_DRIVER_URL": "spark://d:1", "SPARK_APPLICATION_ID": "app",
        "SPARK_JAVA_OPT_10": "-Dtenth", "SPARK_JAVA_OPT_2": "-Dsecond",
    }  # fmt: skip
    line = entrypoint.command_of(["executor"], environment)
    assert line[:6] == ["/java/bin/java", "-Dsecond", "-Dtenth", "-Xms1024m", "-Xmx1024m", "-cp"]
    assert line[6] == "/opt/spark/conf:/spark/jars/*"
    options = dict(zip(line[8::2], line[9::2], strict=True))
    assert options == {
        "--driver-url": "spark://d:1", "--executor-id": "7", "--cores": "2", "--app-id": "app", "--hostname": "10.1",
        "--resourceProfileId": "0", "--podName": "exec-7",
    }  # fmt: skip


def test_any_other_command_runs_as_it_is(entrypoint):
    assert entrypoint.command_of(["tidelog", "check"], {"SPARK_HOME": "/spark"}) == ["tidelog", "check"]
