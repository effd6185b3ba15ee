"""What requests cost: prices from a file, and the report."""

import json
from pathlib import Path

import pytest

from tidelog.cli.perf.storage_calls import S3_STANDARD, Meter, Prices, read_prices
from tidelog.commands.failures import UsageProblemError
from tidelog.log.storage.requests import RequestCounts, RequestKind, Requests

TOML = """
name = "our store"

[requests]
get = 0.01
put = 0.1
list = 0.2
delete = 0
head = 0.03

[per_gb]
received = 0.5
"""


def written(folder: Path, text: str, name: str = "prices.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_kinds_without_a_price_cost_what_their_like_costs(tmp_path: Path) -> None:
    prices = read_prices(written(tmp_path, TOML))
    assert prices.name == "our store"
    assert {kind.value: prices.of(kind) for kind in RequestKind} == {
        "get": 0.01,
        "ranged_get": 0.01,
        "head": 0.03,
        "list": 0.2,
        "put": 0.1,
        "conditional_put": 0.1,
        "multipart_create": 0.1,
        "multipart_part": 0.1,
        "multipart_complete": 0.1,
        "multipart_abort": 0.0,
        "delete": 0.0,
        "copy": 0.1,
    }


def test_json_says_the_same_as_toml(tmp_path: Path) -> None:
    body = {
        "name": "our store",
        "requests": {"get": 0.01, "put": 0.1, "list": 0.2, "delete": 0, "head": 0.03},
        "per_gb": {"received": 0.5},
    }
    assert read_prices(written(tmp_path, json.dumps(body), "p.json")) == read_prices(written(tmp_path, TOML))


def test_a_bill() -> None:
    counts = RequestCounts({RequestKind.GET: 10_000, RequestKind.CONDITIONAL_PUT: 2_000}, 10**9, 3 * 10**9)
    assert S3_STANDARD.cost(counts) == pytest.approx(10 * 0.0004 + 2 * 0.005)
    dearer = Prices("p", S3_STANDARD.requests, sent_gb=1.0, received_gb=0.1)
    assert dearer.cost(counts) == pytest.approx(0.014 + 1.0 + 0.3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("get = ", "is no TOML"),
        ("", "requests.get is missing"),
        ("[requests]\nget = 1\nput = 1\nlist = 1", "requests.delete is missing"),
        (TOML.replace("head", "heads"), "requests.heads is unknown; known are get, ranged_get"),
        (TOML.replace("0.03", '"dear"'), "requests.head is 'dear', and a price is a number"),
        (TOML.replace("0.03", "-1"), "requests.head is -1"),
        (TOML.replace("0.03", "nan"), "requests.head is nan"),
        (TOML.replace("0.03", "true"), "requests.head is True"),
        (TOML.replace("received", "recieved"), "per_gb.recieved is unknown; known are sent, received"),
        ("requests = 3", "requests is no table"),
        ("region = 1\n" + TOML, "region is unknown"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageProblemError) as caught:
        read_prices(written(tmp_path, text))
    assert words in str(caught.value)
    assert "docs/object-stores.md" in str(caught.value)


def test_json_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageProblemError, match="is no JSON"):
        read_prices(written(tmp_path, TOML, "p.json"))
    with pytest.raises(UsageProblemError, match="no table of tables"):
        read_prices(written(tmp_path, "[]", "q.json"))


def test_opening_is_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    requests = Requests()
    requests.note(RequestKind.GET, "a", received=10)
    meter = Meter(requests, S3_STANDARD, real=True)
    requests.note(RequestKind.PUT, "b", sent=2048)
    requests.note(RequestKind.GET, "c", times=3)
    calls = meter.calls(2000)
    assert calls.as_json() == {
        "real": True,
        "prices": "S3 Standard, us-east-1",
        "calls": {"get": 3, "put": 1},
        "per_1000_records": {"get": 1.5, "put": 0.5},
        "sent_bytes": 2048,
        "received_bytes": 0,
        "usd": pytest.approx(0.0000062),
        "usd_per_1000_records": pytest.approx(0.0000031),
        "opening": {"get": 1},
    }
    calls.print_lines()
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()] == [
        "Storage calls, at prices of S3 Standard, us-east-1:",
        "call calls per 1,000 records USD per 1,000 calls USD",
        "get 3 1.500 0.0004 0.000001",
        "put 1 0.500 0.005 0.000005",
        "all 4 2.000 0.000006",
        "Sent 2.0 KiB, received 0 B.",
        "1,000,000 records like these cost 0.003100 USD.",
        "Opening the lake and the topic took 1 call before: get 1.",
    ]


def test_without_records_there_is_nothing_per_record() -> None:
    requests = Requests()
    meter = Meter(requests, S3_STANDARD, real=False)
    requests.note(RequestKind.GET, "a")
    assert meter.calls(0).as_json()["per_1000_records"] == {"get": None}
