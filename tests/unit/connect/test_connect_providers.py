"""Config providers (KIP-297, KIP-632, KIP-887, KIP-993): what variables stand for, and that nothing shows it."""

import pytest
from support.connect_plugins import COLLECTOR, COUNTER
from support.waiting import eventually
from test_connect_api import CONVERTERS, Rest

from tidelog.connect.config.providers import ConfigProviders, ProvidedValues
from tidelog.connect.config.values import ConnectConfigError

ALL = {"config.providers": "file,env,directory"}
JAVA = "org.apache.kafka.common.config.provider."


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "secrets.properties").write_text("user = ann\npassword: h\\u00fcnter2 =x\nempty=\nshort=5\n")
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "token").write_text("a token\n")
    monkeypatch.setenv("DB_HOST", "db.example")
    return tmp_path


VALUES = [
    ("${file:F:user}", "ann"),
    ("${file:F:password}", "hünter2 =x"),
    ("${file:F:empty}", ""),
    ("${directory:D:token}", "a token\n"),
    ("${env:DB_HOST}", "db.example"),
    ("${env::DB_HOST}", "db.example"),
    ("db://${file:F:user}:${file:F:password}@${env:DB_HOST}/x", "db://ann:hünter2 =x@db.example/x"),
    ("${vault:secret:key}", "${vault:secret:key}"),
    ("${HOME} $x {y} ${", "${HOME} $x {y} ${"),
    ("plain", "plain"),
]


def here(text, folder):
    return text.replace("F:", f"{folder}/secrets.properties:").replace("D:", f"{folder}/mounted:")


@pytest.mark.parametrize(("written", "value"), VALUES)
def test_a_variable_stands_for_its_value(folder, written, value):
    found = ConfigProviders(ALL).resolved({"key": here(written, folder)})
    assert found.config == {"key": value}
    assert found.raw == {"key": here(written, folder)}


WRONG = [
    ("${file:F:nothing}", "no key nothing"),
    ("${file:/no/where:key}", "finds no file /no/where"),
    ("${file:D:key}", "finds no file"),
    ("${directory:D:nothing}", "finds no file"),
    ("${directory:D:../secrets.properties}", "no name of a file"),
    ("${directory:D:..}", "no name of a file"),
    ("${env:NOT_THERE}", "no NOT_THERE"),
    ("${env:path:DB_HOST}", "has no path"),
]


@pytest.mark.parametrize(("written", "said"), WRONG)
def test_a_variable_without_a_value_is_refused_by_name(folder, written, said):
    with pytest.raises(ConnectConfigError) as refused:
        ConfigProviders(ALL).resolved({"some.key": here(written, folder)})
    assert here(written, folder) in str(refused.value)
    assert "some.key" in str(refused.value)
    assert said in str(refused.value)


def test_without_providers_a_variable_is_a_text(folder):
    config = {"key": here("${file:F:user}", folder)}
    assert ConfigProviders({}).resolved(config).config == config


def test_providers_have_names_of_their_own_and_connects_classes(folder):
    worker = {"config.providers": "a, b", "config.providers.a.class": JAVA + "FileConfigProvider"}
    worker["config.providers.b.class"] = "EnvVarConfigProvider"
    found = ConfigProviders(worker).resolved({"x": here("${a:F:user}@${b:DB_HOST}", folder)})
    assert found.config == {"x": "ann@db.example"}
    with pytest.raises(ConnectConfigError, match=r"config\.providers\.v\.class: there are FileConfigProvider"):
        ConfigProviders({"config.providers": "v", "config.providers.v.class": "com.example.Vault"})
    with pytest.raises(ConnectConfigError, match=r"config\.providers\.vault\.class"):
        ConfigProviders({"config.providers": "vault"})


def test_only_allowed_paths_are_read_and_links_are_followed_first(folder):
    worker = {**ALL, "config.providers.file.param.allowed.paths": f"{folder}/mounted, /etc/tidelog"}
    worker["config.providers.directory.param.allowed.paths"] = f"{folder}/mounted"
    providers = ConfigProviders(worker)
    (folder / "mounted" / "more.properties").write_text("k=v\n")
    (folder / "mounted" / "link.properties").symlink_to(folder / "secrets.properties")
    assert providers.resolved({"x": here("${file:D/more.properties:k}".replace("D/", f"{folder}/mounted/"), folder)})
    for path in ("secrets.properties", "mounted/link.properties", "mounted/../secrets.properties"):
        with pytest.raises(ConnectConfigError, match="may not read"):
            providers.resolved({"x": "${file:" + f"{folder}/{path}:user" + "}"})
    assert providers.resolved({"x": here("${directory:D:token}", folder)}).config == {"x": "a token\n"}
    with pytest.raises(ConnectConfigError, match="may not read"):
        providers.resolved({"x": "${directory:" + f"{folder}:secrets.properties" + "}"})


def test_the_environment_may_be_limited(folder, monkeypatch):
    monkeypatch.setenv("OTHER", "x")
    providers = ConfigProviders({**ALL, "config.providers.env.param.allowlist.pattern": "DB_.*"})
    assert providers.resolved({"k": "${env:DB_HOST}"}).config == {"k": "db.example"}
    with pytest.raises(ConnectConfigError, match="no OTHER that connectors may read"):
        providers.resolved({"k": "${env:OTHER}"})
    with pytest.raises(ConnectConfigError, match=r"allowlist\.pattern"):
        ConfigProviders({**ALL, "config.providers.env.param.allowlist.pattern": "("})


HIDDEN = [
    ("p@ss/word", "can't connect to db://ann:p@ss/word@host", "can't connect to db://ann:${x:k}@host"),
    ("p@ss/word", "db://ann:p%40ss%2Fword@host", "db://ann:${x:k}@host"),
    ('quo"te', r'{"password": "quo\"te"}', '{"password": "${x:k}"}'),
    ("it's", 'password="it\'s"', 'password="${x:k}"'),
    ("5", "5 of 15, x5, 5.", "${x:k} of 15, x5, ${x:k}."),
    ("token\n", "token", "${x:k}"),
    ("", "nothing is hidden", "nothing is hidden"),
]


@pytest.mark.parametrize(("value", "text", "shown"), HIDDEN)
def test_values_are_hidden_in_texts(value, text, shown):
    secrets = ProvidedValues()
    secrets.add({value: "${x:k}"})
    assert secrets.hidden(text) == shown


def test_a_longer_secret_is_hidden_whole():
    secrets = ProvidedValues()
    secrets.add({"secret": "${a:k}"})
    secrets.add({"secret-more": "${b:k}"})
    assert secrets.hidden("secret-more secret") == "${b:k} ${a:k}"


def test_tasks_get_the_variables_back(folder):
    raw = {"url": here("db://${file:F:user}:${file:F:password}@h", folder), "batch": here("${file:F:short}", folder)}
    found = ConfigProviders(ALL).resolved(raw)
    made = {"url": found.config["url"], "batch": "5", "dsn": "x hünter2 =x y", "part": "15", "quoted": "h%C3%BCnter2"}
    again = found.unresolved(made)
    assert again["url"] == raw["url"]
    assert again["batch"] == raw["batch"]
    assert again["dsn"] == here("x ${file:F:password} y", folder)
    assert again["part"] == "15"
    assert ConfigProviders(ALL).resolved(again).config == made


# --- through a worker ------------------------------------------------------------------------------------------


def test_a_worker_runs_with_values_and_shows_variables(folder, caplog):
    rest = Rest(folder, started=True, properties=ALL)
    try:
        (folder / "secrets.properties").write_text("most=20\nat=11\ntopic=hidden-topic\n")
        config = {
            "connector.class": COUNTER, "topic": here("${file:F:topic}", folder),
            "most": here("${file:F:most}", folder), "fail.at": here("${file:F:at}", folder), "batch": "1", **CONVERTERS,
        }  # fmt: skip
        rest.ok("PUT", "/connectors/c/config", config, 201)
        eventually(lambda: rest.states("c") == ["RUNNING", "FAILED"], "it has failed, as it was to")
        rows = [one for batch in rest.lake.topic("hidden-topic").read(0) for one in batch.column("value").to_pylist()]
        assert len(rows) == 11
        answers = [
            rest("GET", path).text
            for path in (
                "/connectors?expand=info&expand=status", "/connectors/c", "/connectors/c/config", "/connectors/c/tasks",
                "/connectors/c/tasks-config", "/connectors/c/status", "/connectors/c/tasks/0/status",
            )
        ]  # fmt: skip
        answers.append(rest("PUT", f"/connector-plugins/{COUNTER}/config/validate", config).text)
        stored = [repr(one) for one in rest.worker.shared.configs.look(lambda state: [state.connectors, state.tasks])]
        for text in [*answers, *stored]:
            assert "${file:" in text
            assert "hidden-topic" not in text
        assert "failed at ${file:" in rest.ok("GET", "/connectors/c/tasks/0/status")["trace"]
        assert "failed at 11" not in caplog.text
    finally:
        rest.close()


def test_what_is_wrong_with_a_value_is_said_without_it(folder):
    rest = Rest(folder, started=False, properties=ALL)
    try:
        (folder / "secrets.properties").write_text("number=secret-text\n")
        config = {"connector.class": COUNTER, "topic": "t", "most": here("${file:F:number}", folder)}
        status, said = rest.refused("PUT", "/connectors/c/config", config)
        assert status == 400
        assert "configuration most" in said
        assert "secret-text" not in said
        found = rest.ok("PUT", f"/connector-plugins/{COUNTER}/config/validate", config)
        most = next(one["value"] for one in found["configs"] if one["value"]["name"] == "most")
        assert most["value"] == config["most"]
        assert most["errors"]
        assert "secret-text" not in str(found)
        status, said = rest.refused("PUT", "/connectors/c/config", {**config, "most": "${file:/no/where:key}"})
        assert (status, "finds no file /no/where" in said) == (400, True)
        sink = {"connector.class": COLLECTOR, "topics": "t", "file": "${env:NOT_THERE}"}
        found = rest.ok("PUT", f"/connector-plugins/{COLLECTOR}/config/validate", sink)
        errors = {one["value"]["name"]: one["value"]["errors"] for one in found["configs"] if one["value"]["errors"]}
        assert list(errors) == ["file"]
    finally:
        rest.close()
