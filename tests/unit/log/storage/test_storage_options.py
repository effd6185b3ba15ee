"""obstore's configuration, by a lake's options and the environment."""

import pickle
from pathlib import Path

import pytest

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.storage.aws_profiles import read_profile
from tidelog.log.storage.objects_connecting import retries
from tidelog.log.storage.option_table import OPTIONS
from tidelog.log.storage.options import StoreOptions, connection, store_options

KEYS = {"lake.s3.access.key.id": "AKIAMINE", "lake.s3.secret.access.key": "mysecret"}
KEY_VARIABLES = {"AWS_ACCESS_KEY_ID": "AKIATHEIRS", "AWS_SECRET_ACCESS_KEY": "theirsecret"}
TOKEN = {"AWS_SESSION_TOKEN": "theirtoken"}
THEIRS = {"access_key_id": "AKIATHEIRS", "secret_access_key": "theirsecret"}
PROFILE = {"aws_access_key_id": "AKIAPROFILE", "aws_secret_access_key": "profilesecret", "region": "eu-west-3"}


def mine(token: str | None = None) -> dict[str, str | None]:
    return {"access_key_id": "AKIAMINE", "secret_access_key": "mysecret", "token": token}


def of_profile() -> dict[str, str | None]:
    return {"access_key_id": "AKIAPROFILE", "secret_access_key": "profilesecret", "token": None}


# scheme, options, environment -> store's configuration, client's, keys
TABLE: dict[str, tuple] = {
    "nothing": ("s3", {}, {}, {}, {}, None),
    "region": ("s3", {"lake.s3.region": "r"}, {}, {"region": "r"}, {}, None),
    "the other spelling of the scheme": ("s3a", {"lake.s3.region": "r"}, {}, {"region": "r"}, {}, None),
    "the environment's region": ("s3", {}, {"AWS_REGION": "r", "AWS_DEFAULT_REGION": "d"}, {"region": "r"}, {}, None),
    "the default region": ("s3", {}, {"AWS_DEFAULT_REGION": "d", "AWS_REGION": " "}, {"region": "d"}, {}, None),
    "options beat variables": ("s3", {"lake.s3.region": "r"}, {"AWS_REGION": "e"}, {"region": "r"}, {}, None),
    "S3's own endpoint variable beats the general one": (
        "s3",
        {},
        {"AWS_ENDPOINT_URL": "https://all", "AWS_ENDPOINT_URL_S3": "https://s3"},
        {"endpoint": "https://s3"},
        {},
        None,
    ),
    "an endpoint without TLS asks for that": (
        "s3",
        {"lake.s3.endpoint": "http://h:1"},
        {},
        {"endpoint": "http://h:1"},
        {"allow_http": "true"},
        None,
    ),
    "so does the environment's": (
        "s3",
        {},
        {"AWS_ENDPOINT_URL": "HTTP://h:1"},
        {"endpoint": "HTTP://h:1"},
        {"allow_http": "true"},
        None,
    ),
    "an explicit word on TLS": ("s3", {"lake.s3.allow.http": "TRUE"}, {}, {}, {"allow_http": "true"}, None),
    "the environment's keys are obstore's": (
        "s3",
        {},
        {**KEY_VARIABLES, **TOKEN},
        {**THEIRS, "session_token": "theirtoken"},
        {},
        None,
    ),
    "own keys come without the environment's token": ("s3", KEYS, {**KEY_VARIABLES, **TOKEN}, {}, {}, mine()),
    "own keys with a token": ("s3", {**KEYS, "lake.s3.session.token": "t"}, TOKEN, {}, {}, mine("t")),
    "a profile": ("s3", {"lake.s3.profile": "p"}, KEY_VARIABLES, {"region": "eu-west-3"}, {}, of_profile()),
    "a profile, but another region": (
        "s3",
        {"lake.s3.profile": "p"},
        {"AWS_REGION": "r"},
        {"region": "r"},
        {},
        of_profile(),
    ),
    "the environment's profile": ("s3", {}, {"AWS_PROFILE": "p"}, {"region": "eu-west-3"}, {}, of_profile()),
    "the environment's keys beat its profile": ("s3", {}, {"AWS_PROFILE": "p", **KEY_VARIABLES}, THEIRS, {}, None),
    "own keys beat the environment's profile": ("s3", KEYS, {"AWS_PROFILE": "p"}, {}, {}, mine()),
    "the bucket in the path": (
        "s3",
        {"lake.s3.path.style.access": "true"},
        {},
        {"virtual_hosted_style_request": "false"},
        {},
        None,
    ),
    "the bucket in the host": (
        "s3",
        {"lake.s3.path.style.access": "false"},
        {},
        {"virtual_hosted_style_request": "true"},
        {},
        None,
    ),
    "times": (
        "s3",
        {"lake.store.request.timeout.ms": "1500", "lake.store.connect.timeout.ms": "5"},
        {},
        {},
        {"timeout": "1500ms", "connect_timeout": "5ms"},
        None,
    ),
    "obstore's own keys": (
        "s3",
        {"AWS_REGION": "r", "AWS_ALLOW_HTTP": "true", "timeout": "5s"},
        {"AWS_REGION": "e", "AWS_ALLOW_HTTP": "false"},
        {"AWS_REGION": "r"},
        {"allow_http": "true", "timeout": "5s"},
        None,
    ),
    "Google": (
        "gs",
        {"lake.gcs.service.account.path": "/sa.json"},
        {"AWS_REGION": "r"},
        {"service_account": "/sa.json"},
        {},
        None,
    ),
    "Google's variable": (
        "gs",
        {},
        {"GOOGLE_APPLICATION_CREDENTIALS": "/adc.json"},
        {"application_credentials": "/adc.json"},
        {},
        None,
    ),
    "Azure": (
        "abfss",
        {"lake.azure.account.name": "a", "lake.azure.account.access.key": "QUJD"},
        {"AZURE_STORAGE_ACCOUNT_NAME": "b"},
        {"account_name": "a", "account_key": "QUJD"},
        {},
        None,
    ),
    "Azure's variables": (
        "az",
        {},
        {"AZURE_STORAGE_ACCOUNT_NAME": "b", "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=x"},
        {"account_name": "b", "sas_token": "sv=1&sig=x"},
        {},
        None,
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_what_obstore_is_told(case: str):
    scheme, options, environment, config, client, keys = TABLE[case]
    told = connection(scheme, StoreOptions(options), environment, {"p": PROFILE}.__getitem__)
    assert (told.config, told.client, told.keys) == (config, client, keys)


@pytest.mark.parametrize(
    ("given", "times", "first_s", "most_s", "timeout_s"),
    [
        ({}, 10, 0.1, 3.0, 40.0),
        ({"lake.store.retries": "0"}, 0, 0.1, 3.0, 40.0),
        ({"lake.store.retry.timeout.ms": "1500"}, 10, 0.1, 3.0, 1.5),
        ({"lake.store.retry.backoff.ms": "20", "lake.store.retry.backoff.max.ms": "500"}, 10, 0.02, 0.5, 40.0),
        ({"lake.store.retry.backoff.ms": "5000"}, 10, 5.0, 5.0, 40.0),
    ],
)
def test_how_requests_are_repeated(given: dict[str, str], times: int, first_s: float, most_s: float, timeout_s: float):
    told = retries(connection("s3", StoreOptions(given), {}, {}.__getitem__).retry)
    assert (told["max_retries"], told["retry_timeout"].total_seconds()) == (times, timeout_s)
    backoff = told["backoff"]
    assert (backoff["init_backoff"].total_seconds(), backoff["max_backoff"].total_seconds()) == (first_s, most_s)


REFUSED: dict[str, tuple[str, dict, dict, str]] = {
    "unknown": (
        "s3",
        {"lake.s3.endpiont": "h"},
        {},
        "no option 'lake.s3.endpiont' .* nearest known one is 'lake.s3.endpoint'",
    ),
    "another store's": ("s3", {"lake.gcs.endpoint": "h"}, {}, "at gs://, and this one is at s3://"),
    "empty": ("s3", {"lake.s3.region": " "}, {}, "'lake.s3.region' is empty"),
    "no flag": ("s3", {"lake.s3.express": "yes"}, {}, "'lake.s3.express' is 'yes'. Set it to true or false"),
    "no time": ("s3", {"lake.store.request.timeout.ms": "5s"}, {}, "is '5s'. Set it to a whole number"),
    "no count": ("s3", {"lake.store.retries": "many"}, {}, "is 'many'. Set it to a whole number from 0 to 999999999"),
    "no time at all": ("s3", {"lake.store.request.timeout.ms": "0"}, {}, "milliseconds from 1 to"),
    "half of the keys": (
        "s3",
        {"lake.s3.secret.access.key": "hunter2hunter2"},
        KEY_VARIABLES,
        "'lake.s3.access.key.id' is missing",
    ),
    "a token alone": (
        "s3",
        {"lake.s3.session.token": "hunter2hunter2"},
        KEY_VARIABLES,
        "'lake.s3.access.key.id' is miss",
    ),
    "two who ask": ("s3", {**KEYS, "lake.s3.profile": "p"}, {}, "both name the caller"),
    "twice": ("s3", {"lake.s3.region": "r", "aws_region": "s"}, {}, "given twice, the other time as 'region'"),
    "twice, for the client": ("s3", {"lake.s3.allow.http": "true", "allow_http": "true"}, {}, "given twice"),
    "TLS and none": ("s3", {"lake.s3.endpoint": "http://h", "lake.s3.allow.http": "false"}, {}, "begins with http://"),
    "none, by the environment": ("s3", {"lake.s3.endpoint": "http://h"}, {"AWS_ALLOW_HTTP": "false"}, "AWS_ALLOW_HTTP"),
    "a secret that does not fit": (
        "az",
        {"lake.azure.client.secrets": "hunter2hunter2"},
        {},
        "'lake.azure.client.secret'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_options_that_are_refused(case: str):
    scheme, options, environment, message = REFUSED[case]
    with pytest.raises(InvalidConfigError, match=message) as caught:
        connection(scheme, StoreOptions(options), environment, {"p": PROFILE}.__getitem__)
    assert "hunter2" not in str(caught.value)


def test_the_table_is_consistent():
    names = [option.name for option in OPTIONS]
    assert len(set(names)) == len(names)
    assert {option.store for option in OPTIONS} == {"s3", "gcs", "azure", "store"}
    assert all(option.doc.endswith(".") and option.name == option.name.lower() for option in OPTIONS)


def test_secrets_are_never_shown():
    secrets = {option.name: "hunter2hunter2" for option in OPTIONS if option.secret}
    options = StoreOptions({**secrets, "secret_access_key": "hunter2hunter2", "lake.s3.region": "eu-west-3", "n": True})
    assert "hunter2" not in f"{options} {options!r} {[options]}"
    assert "'lake.s3.region': 'eu-west-3'" in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options
    assert hash(options) == hash(StoreOptions(dict(options)))
    told = connection("s3", StoreOptions(KEYS), {}, {}.__getitem__)
    assert "AKIAMINE" not in repr(told)
    assert set(told.secrets) == {"AKIAMINE", "mysecret"}
    told = connection("s3", StoreOptions(), KEY_VARIABLES, {}.__getitem__)
    assert set(told.secrets) == {"AKIATHEIRS", "theirsecret"}


def test_a_store_takes_its_options_from_an_entrances():
    assert store_options({"lake": "s3://b/l", "topic": "t", "lake.s3.region": "r", "lake.s3.express": True}) == {
        "lake.s3.region": "r",
        "lake.s3.express": "true",
    }
    with pytest.raises(InvalidConfigError, match=r"nearest known one is 'lake\.s3\.region'"):
        store_options({"lake.s3.regoin": "r"})


# --- profiles ------------------------------------------------------------------------------------------------

CONFIG = """
[default]
region = eu-north-1
aws_access_key_id = AKIADEFAULT
aws_secret_access_key = defaultsecret
[profile dev]
region = eu-west-1
s3 =
    max_concurrent_requests = 20
[profile sso]
sso_session = corp
[profile odd]
region = x
"""
CREDENTIALS = """
[dev]
aws_access_key_id=AKIADEV
aws_secret_access_key=a/b+c=%d
aws_session_token = token
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config").write_text(CONFIG)
    (tmp_path / "credentials").write_text(CREDENTIALS)
    return {
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }


def test_a_profile_is_put_together_from_two_files(files: dict[str, str]):
    found = read_profile("dev", files)
    assert (found["aws_access_key_id"], found["aws_secret_access_key"]) == ("AKIADEV", "a/b+c=%d")
    assert (found["aws_session_token"], found["region"]) == ("token", "eu-west-1")
    assert read_profile("default", files)["aws_access_key_id"] == "AKIADEFAULT"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "'gone' .*is not there"),
        ("sso", "by sso_session, which needs AWS's own tools. Give keys in the environment instead: .*--profile sso"),
        ("odd", "holds no keys"),
    ],
)
def test_profiles_that_are_refused(files: dict[str, str], name: str, message: str):
    with pytest.raises(InvalidConfigError, match=message):
        read_profile(name, files)


def test_a_file_that_is_none_is_not_shown(files: dict[str, str]):
    Path(files["AWS_SHARED_CREDENTIALS_FILE"]).write_text("aws_secret_access_key=hunter2hunter2\n")
    with pytest.raises(InvalidConfigError, match="can't be read") as caught:
        read_profile("dev", files)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(InvalidConfigError, match="is not there"):
        read_profile("dev", {name: f"{path}.gone" for name, path in files.items()})
