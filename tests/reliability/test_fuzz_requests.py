"""6,000 requests of every API and version at a broker's process: see fuzz_requests.py."""

from pathlib import Path

from fuzz_requests import CASES, fuzz

SEED = 20261126


def test_no_request_ends_a_broker(tmp_path: Path) -> None:
    found = fuzz(tmp_path, SEED, 6_000)
    again = f"python tests/reliability/fuzz_requests.py --seed {SEED} --requests 6000"
    assert not found.problems, f"{found.problems}\n\nAgain: {again}"
    assert found.requests >= 6_000
    assert found.by_api.keys() == {key.name for key, _ in CASES}
    # It is the broker that was tried, and not only its door.
    assert found.answered > found.requests / 4
    assert found.closed > found.requests / 20
