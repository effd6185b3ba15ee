"""Field paths of KIP-821: each row is a rule of Kafka's."""

import pytest

from tidelog.connect.transforms.base import V2, path_steps

# (path, its steps in version 2)
ROWS = [
    ("", ()),
    ("..", ("", "", "")),
    ("foo..", ("foo", "", "")),
    (".bar.", ("", "bar", "")),
    ("..baz", ("", "", "baz")),
    ("foobarbaz", ("foobarbaz",)),
    ("foo.bar.baz", ("foo", "bar", "baz")),
    ("foo`bar`baz", ("foo`bar`baz",)),
    ("`foo.bar.baz`", ("foo.bar.baz",)),
    ("foo.`bar.baz`", ("foo", "bar.baz")),
    ("`foo.bar`.baz", ("foo.bar", "baz")),
    ("foo.`bar`.baz", ("foo", "bar", "baz")),
    ("foo.``bar.baz`", ("foo", "`bar.baz")),
    ("foo.`bar.baz``", ("foo", "bar.baz`")),
    ("foo.`ba`r.baz`", ("foo", "ba`r.baz")),
    ("foo.ba`r.baz", ("foo", "ba`r", "baz")),
    ("foo.``bar``.baz", ("foo", "`bar`", "baz")),
    ("``foo.bar.baz``", ("`foo.bar.baz`",)),
    ("foo.`bar\\`.baz`", ("foo", "bar`.baz")),
    ("foo.`bar.`baz`", ("foo", "bar.`baz")),
    ("foo.`bar\\`.`baz`", ("foo", "bar`.`baz")),
    ("foo.`bar\\\\`.\\`baz`", ("foo", "bar\\`.\\`baz")),
]


@pytest.mark.parametrize(("path", "steps"), ROWS)
def test_version_2_separates_steps_by_dots(path, steps):
    assert path_steps(path, V2) == steps
    assert path_steps(path, "v2") == steps


@pytest.mark.parametrize("path", ["foo.bar.baz", "foo`bar`", "foo.`bar.baz`"])
def test_version_1_takes_the_text_as_one_name(path):
    assert path_steps(path) == (path,)


@pytest.mark.parametrize(
    ("path", "position"),
    [("`foo.bar.baz", 0), ("foo.`bar.baz", 4), ("foo.bar.`baz", 8), ("foo.bar.`baz\\`", 8)],
)
def test_a_wrapped_step_that_never_ends_is_refused(path, position):
    with pytest.raises(ValueError, match=f"before backtick at position {position} to escape it") as raised:
        path_steps(path, V2)
    assert f"[{path}]" in str(raised.value)
