"""Which paths can name an object; every adapter refuses the others, by `test_storage_contract.py`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.base.errors import InvalidPathError
from tidelog.log.storage.port import check_path


def is_allowed(path: str) -> bool:
    parts = path.split("/")
    letters = not any(ord(c) < 32 or c in "\x7f\\" or "\ud800" <= c <= "\udfff" for c in path)
    unfinished = parts[-1].startswith(".") and parts[-1].endswith(".tmp") and len(parts[-1]) > len(".tmp")
    return letters and not {"", ".", ".."} & set(parts) and not unfinished


@given(st.text(st.sampled_from("a0_-=./é \\\x00\n"), max_size=9), st.sampled_from(["", ".tmp", "/.a.tmp", "/p=1"]))
def test_a_path_has_no_part_with_a_meaning_of_its_own(text: str, end: str) -> None:
    path = text + end
    if is_allowed(path):
        check_path(path)
    else:
        with pytest.raises(InvalidPathError):
            check_path(path)
