"""Packages that only a part of tidelog needs: its extras, as pyproject.toml lists them."""

from importlib.util import find_spec

from tidelog.log.base.errors import MissingPackageError


def require(extra: str, *modules: str) -> None:
    """Check that an extra's modules can be imported, without importing them.

    Raises `MissingPackageError`, which is an `ImportError` too, with what to install.
    """
    missing = [module for module in modules if not _is_there(module)]
    if missing:
        told = "is" if len(missing) == 1 else "are"
        raise MissingPackageError(
            f"{' and '.join(missing)} {told} not installed: a client alone does not need that, it comes with tidelog's"
            f" extra '{extra}'. Install tidelog again with it: pip install 'tidelog[{extra}]', or pip install"
            f" 'WHEEL[{extra}]', where WHEEL is a wheel's path, or make setup in a clone."
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of what it is in
        return False
