"""DeleteGroups by a clock that tests set: a session is over when its time is, and not some ticks later."""

import pytest

from tidelog.broker.wire.apis import ApiKey

SESSION_MS = 6000
TICK_S = 0.1


@pytest.fixture
def ticking(lake, requests):
    """Lets time pass as a broker sees it, tick by tick."""
    coordinator = requests.broker.handlers[ApiKey.DELETE_GROUPS].__self__._coordinator

    def passes(seconds):
        while seconds > 1e-9:
            lake.clock.sleep(min(TICK_S, seconds))
            if seconds >= TICK_S:
                coordinator.tick()
            seconds -= TICK_S

    return passes


def deleted(requests):
    (result,) = requests.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": ["g"]}).results
    return int(result.error_code)


def test_a_static_member_that_was_closed_is_gone_when_its_session_is_over(lake, requests, ticking):
    """It does not leave (KIP-345). Tools that wait for its session and then delete the group find it empty."""
    object.__setattr__(requests.broker._context.settings.groups, "initial_rebalance_delay_ms", 0)
    body = {
        "group_id": "g",
        "session_timeout": SESSION_MS,
        "rebalance_timeout": SESSION_MS,
        "member_id": "",
        "group_instance_id": "i",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    assert requests.ask(ApiKey.JOIN_GROUP, 5, body).error_code == 0
    ticking(5.95)
    assert deleted(requests) == 68, "NON_EMPTY_GROUP"
    ticking(0.05)
    assert deleted(requests) == 0
    assert deleted(requests) == 69, "GROUP_ID_NOT_FOUND"
