"""The walk over declared keys: what is given, what has its default, and what must be given."""

from dataclasses import dataclass

import pytest

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.keys import REQUIRED, FieldKey, JudgedKey, KeyTable, KeyWords
from tidelog.log.base.typed_values import Text, UnfitValueError, Whole


@dataclass
class Words(KeyWords[FieldKey]):
    def value(self, name, key, given):
        try:
            return key.kind.parse(given)
        except ValueError as error:
            raise InvalidConfigError(f"{name}: {error}") from None


def default_of(key):
    if key.default is REQUIRED:
        raise InvalidConfigError(f"{key.name} is missing")
    return key.default


FILE = FieldKey("file", Text(), "The file.", default=REQUIRED)
SIZE = FieldKey("size", Whole(1), "How many.", default=10)
TABLE = KeyTable({key.name: key for key in (FILE, SIZE)}, Words(), absent=default_of)


def test_every_key_has_a_value_and_other_names_are_left_alone():
    assert TABLE.read_all({"file": "a", "other": "x"}) == {"file": "a", "size": 10}


@pytest.mark.parametrize(
    ("given", "why"), [({}, "file is missing"), ({"file": "a", "size": "0"}, "size: give a whole number of at least 1")]
)
def test_the_first_key_that_is_wrong_is_refused(given, why):
    with pytest.raises(InvalidConfigError, match=why):
        TABLE.read_all(given)


def test_all_that_is_wrong_is_collected():
    judged = list(TABLE.judge({"size": "x"}, InvalidConfigError))
    assert [str(one.error) for one in judged] == ["file is missing", "size: give a whole number of at least 1"]
    assert list(TABLE.judge({"file": "a"}, InvalidConfigError)) == [JudgedKey(FILE, "a"), JudgedKey(SIZE, 10)]


def test_other_errors_are_raised():
    with pytest.raises(UnfitValueError):
        list(KeyTable(TABLE.names, Words(), absent=refuse).judge({}, InvalidConfigError))


def refuse(key):
    raise UnfitValueError(key.name, "nothing will do")
