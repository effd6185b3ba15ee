"""Users who log in by a password: what a password, or an exchange, is checked on.

A name that has no credential is checked on a decoy, so that neither the answer nor its cost says whether there is such
a user: a decoy has the mechanism and the iterations of some credential that there is.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidelog.access.broker_user import known_credential
from tidelog.access.credentials import DEFAULT_ITERATIONS, ScramCredential, ScramMechanism, decoy
from tidelog.access.state import AccessState

# What a password is checked on that comes as it is: the first that its user has.
_STRONGEST_FIRST = (ScramMechanism.SHA_512, ScramMechanism.SHA_256)

_Shape = tuple[ScramMechanism, int]


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Mechanism and iterations of all credentials of a state: of each mechanism, and as passwords are checked."""

    state: AccessState
    scram: Mapping[ScramMechanism, Sequence[_Shape]]
    plain: Sequence[_Shape]


class Users:
    """The users as of now. `spare_secret`: what decoys are made of before the lake has a secret. For any thread."""

    def __init__(self, state: Callable[[], AccessState], spare_secret: bytes) -> None:
        self._state = state
        self._spare_secret = spare_secret
        self._shapes = _shapes(state())

    def scram(self, mechanism: ScramMechanism, user: str, *, welcome: bool = True) -> ScramCredential:
        """What an exchange is checked on. `welcome`: False for a user who may not log in here, whatever it knows."""
        state = self._state()
        known = known_credential(state, user, mechanism)
        return known if known is not None and welcome else self._decoy(user, self._shapes_of(state).scram[mechanism])

    def plain(self, user: str, *, welcome: bool = True) -> ScramCredential:
        """What a password is checked on that comes as it is: SASL PLAIN, HTTP Basic."""
        state = self._state()
        known = (known_credential(state, user, mechanism) for mechanism in _STRONGEST_FIRST)
        found = next((one for one in known if one is not None), None)
        return found if found is not None and welcome else self._decoy(user, self._shapes_of(state).plain)

    def _decoy(self, user: str, shapes: Sequence[_Shape]) -> ScramCredential:
        secret = self._state().secret or self._spare_secret
        picked = int.from_bytes(hmac.digest(secret, f"shape\0{user}".encode(), "sha256")[:8])
        mechanism, iterations = shapes[picked % len(shapes)]
        return decoy(mechanism, user, secret, iterations)

    def _shapes_of(self, state: AccessState) -> _Shapes:
        shapes = self._shapes
        if shapes.state is not state:
            shapes = self._shapes = _shapes(state)
        return shapes


def _shapes(state: AccessState) -> _Shapes:
    """As sets: a user more or less changes decoys only with the first credential of its shape."""
    scram: dict[ScramMechanism, set[_Shape]] = {mechanism: set() for mechanism in ScramMechanism}
    plain: set[_Shape] = set()
    for (user, mechanism), one in state.scram.items():
        shape = (mechanism, one.iterations)
        scram[mechanism].add(shape)
        if mechanism is ScramMechanism.SHA_512 or (user, ScramMechanism.SHA_512) not in state.scram:
            plain.add(shape)
    return _Shapes(
        state,
        {mechanism: sorted(found) or [(mechanism, DEFAULT_ITERATIONS)] for mechanism, found in scram.items()},
        sorted(plain) or [(ScramMechanism.SHA_512, DEFAULT_ITERATIONS)],
    )
