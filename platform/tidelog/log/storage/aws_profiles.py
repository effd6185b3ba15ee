"""Profiles of AWS's configuration files (`~/.aws/config`, `~/.aws/credentials`) that hold keys."""

import configparser
from collections.abc import Mapping
from os.path import expanduser
from pathlib import Path

from tidelog.log.base.errors import InvalidConfigError

# Ways to get keys that need AWS's own tools.
_BY_OTHERS = ("credential_process", "sso_session", "sso_start_url", "role_arn", "web_identity_token_file")


def read_profile(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of a profile, those of the credentials file first. Raises `InvalidConfigError`.

    The files are where `AWS_CONFIG_FILE` and `AWS_SHARED_CREDENTIALS_FILE` say, else in `~/.aws`.
    """
    config = environment.get("AWS_CONFIG_FILE") or "~/.aws/config"
    credentials = environment.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    section = name if name == "default" else f"profile {name}"
    settings = {**_section(config, section), **_section(credentials, name)}
    if "aws_access_key_id" in settings and "aws_secret_access_key" in settings:
        return settings
    where = f"AWS's profile {name!r} (in {credentials} and {config})"
    if not settings:
        raise InvalidConfigError(f"{where} is not there. Correct its name, or the files.")
    other = next((key for key in _BY_OTHERS if key in settings), None)
    why = f"gets its keys by {other}, which needs AWS's own tools" if other else "holds no keys"
    raise InvalidConfigError(
        f'{where} {why}. Give keys in the environment instead: eval "$(aws configure export-credentials --profile'
        f' {name} --format env)".'
    )


def _section(path: str, section: str) -> dict[str, str]:
    """A section of a file, empty where there is none. What the file holds is in no message."""
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",))
    try:
        parser.read_string(Path(expanduser(path)).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, configparser.Error) as e:
        raise InvalidConfigError(
            f"AWS's configuration file {path} can't be read ({type(e).__name__}). Correct it, or give keys in the"
            " environment or as options."
        ) from None
    return {k: v.strip() for k, v in parser.items(section)} if parser.has_section(section) else {}
