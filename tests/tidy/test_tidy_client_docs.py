"""docs/clients.md says what the code says."""

import pytest
from tidy_client_docs import CLIENTS, clients_tables
from tidy_docs import with_tables
from tidy_repository import ROOT

from tidelog.clients.settings import ConsumerSettings, ProducerSettings
from tidelog.clients.settings.ignored import IGNORED, REFUSED, REFUSED_FOR_PRODUCERS
from tidelog.log.base.keys import keys_of

PAGE = (ROOT / CLIENTS).read_text(encoding="utf-8")


def test_the_tables_are_up_to_date():
    wanted = with_tables(PAGE, clients_tables())
    assert wanted == PAGE, f"run .venv/bin/python tests/tidy/tidy_client_docs.py to write {CLIENTS}"


def test_every_key_is_on_the_page():
    keys = [*IGNORED, *REFUSED, *REFUSED_FOR_PRODUCERS]
    for settings in (ProducerSettings, ConsumerSettings):
        keys += [name for key in keys_of(settings).values() for name in (key.name, *key.aliases)]
    assert [name for name in keys if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("shown", ["| `linger.ms` | `queue.buffering.max.ms` | `5` |", "| `acks` |", "lifo"])
def test_what_a_row_looks_like(shown):
    assert (shown in PAGE) == (shown != "lifo")
