"""Processes that end between two calls to the store."""


class Crash(BaseException):
    """The process is gone."""


class CrashAt:
    """A hook for `FaultyStorage` that ends the process before its n-th call, which is also after the one before."""

    def __init__(self, moment: int) -> None:
        self.left = moment
        self.crashed = False

    def __call__(self, method: str, path: str, phase: str) -> None:
        if self.crashed:
            raise Crash  # what other threads would still do does not happen either
        self.left -= phase == "before"
        if self.left < 0:
            self.crashed = True
            raise Crash
