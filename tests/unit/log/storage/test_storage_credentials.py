"""A store without credentials: the error says that, and not what a cloud's metadata service said."""

from collections.abc import Iterator, Mapping

import pytest
from support.scripted_http import Answer, ScriptedServer, scripted_server

from tidelog.log.base.errors import NoCredentialsError, StorageError, StorageUnavailableError
from tidelog.log.storage import ObjectStorage, Storage

DENIED, NONE_THERE, DROP = Answer(403, b"no"), Answer(404, b"no role"), Answer(0)
QUICK = {"lake.store.retries": "0", "lake.store.retry.backoff.ms": "1"}
# How each store is configured to ask a server of ours for the machine's role; the message says what to set instead.
STORES: Mapping[str, tuple[str, str, str]] = {
    "s3": (
        "s3://bucket/lake",
        "metadata_endpoint",
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.*give the machine a role",
    ),
    "gcs": ("gs://bucket/lake", "proxy_url", "GOOGLE_APPLICATION_CREDENTIALS.*lake.gcs.service.account.path"),
    "azure": ("az://bucket/lake", "msi_endpoint", "AZURE_STORAGE_ACCOUNT_KEY.*lake.azure.account.access.key"),
}
by_store = pytest.mark.parametrize("store", STORES)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as scripted:
        yield scripted


def storage_of(store: str, server: ScriptedServer, script: Answer) -> tuple[Storage, str]:
    uri, key, advice = STORES[store]
    server.script = [script] * 40
    options = {**QUICK, key: server.url, **({"account_name": "acct"} if store == "azure" else {})}
    return ObjectStorage(uri, options, environment={}), advice


@by_store
@pytest.mark.parametrize("answer", [DENIED, NONE_THERE], ids=["denied", "not there"])
def test_it_is_told(store: str, answer: Answer, server: ScriptedServer):
    storage, advice = storage_of(store, server, answer)
    for call in (
        lambda: storage.get("x"),
        lambda: storage.put("x", b""),
        lambda: storage.put_if_absent("x", b""),
        lambda: list(storage.list_after("")),
        lambda: storage.delete("x"),
    ):
        with pytest.raises(NoCredentialsError, match=rf"There are no credentials for \w+://bucket: .*{advice}") as told:
            call()
        assert f"answers {answer.status}" in str(told.value)
        assert "PUT" not in str(told.value)
        assert "169.254" not in str(told.value)


@by_store
def test_a_service_that_gives_no_answer_may_be_away_for_a_while(store: str, server: ScriptedServer):
    storage, advice = storage_of(store, server, DROP)
    with pytest.raises(StorageUnavailableError, match=rf"There are no credentials for.*gives no answer.*{advice}"):
        storage.get("x")


def test_credentials_that_are_refused_are_another_matter(server: ScriptedServer):
    server.script = [Answer(403, b"<Error><Code>InvalidAccessKeyId</Code></Error>")]
    keys = {"access_key_id": "AKIAEXAMPLE", "secret_access_key": "secret"}
    storage = ObjectStorage("s3://bucket/lake", {**QUICK, **keys, "endpoint": server.url}, environment={})
    with pytest.raises(StorageError, match=r"denies the attempt to read .*/x: .*InvalidAccessKeyId"):
        storage.get("x")
