"""Every block of code of the README and of docs/ runs with its page, is data, or is in the list of those that can't."""

import pytest
from support.cli_calls import cli
from support.pages import NOT_RUN, PAGES, Block, blocks, check_data, programs, tidelog_calls

from tidelog.commands.failures import UsageProblemError

BLOCKS = [block for page in PAGES for block in blocks(page)]
DATA = ("json", "toml", "ini", "yaml", "properties")
CALLS = [call for block in BLOCKS for call in tidelog_calls(block.commands)]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_runs_or_is_data_or_says_why_not(block: Block) -> None:
    if block.language in DATA:
        check_data(block)
    elif block.why_not_run is None:
        assert block in programs(block.page), f"nothing runs {block.language}: write it as python, sh or bash"
    if block.language in ("python", "py"):
        compile(block.code, str(block), "exec")


@pytest.mark.parametrize("listed", NOT_RUN, ids=str)
def test_what_is_listed_as_not_run_is_there_once(listed: tuple[str, str]) -> None:
    page, begin = listed
    assert len([block for block in blocks(page) if block.begins(begin)]) == 1


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_commands_and_their_options_exist(call: list[str]) -> None:
    """An option that isn't there is refused before --help is looked at."""
    shown = cli(*call, "--help")
    assert shown.exit_code == 0, shown.output
    assert "Usage" in shown.stdout


def test_an_option_that_is_not_there_would_be_found() -> None:
    assert cli("consume", "events", "--sideways", "--help").exit_code == 2


def test_data_that_does_not_parse_is_found() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        check_data(Block("p", 1, "json", "", '{"a": 1}\n{"b": }\n'))
    with pytest.raises(ValueError, match="Invalid"):
        check_data(Block("p", 1, "toml", "", "a = \n"))
    with pytest.raises(ValueError, match="no section headers"):
        check_data(Block("p", 1, "ini", "", "ExecStart=tidelog\n"))
    with pytest.raises(ValueError, match="flow mapping"):
        check_data(Block("p", 1, "yaml", "", "brokers: {replicas: 3\n"))
    with pytest.raises(UsageProblemError, match="no setting of a broker"):
        check_data(Block("p", 1, "properties", "", "listeners=PLAINTEXT://:1\nmax.conections=1\n"))
    check_data(Block("p", 1, "properties", "", "bootstrap.servers=a:1\n"))
    check_data(Block("p", 1, "json", "", '{"a": 1}\n{"b": {\n  "c": 2\n}}\n'))


def test_commands_of_units_are_found() -> None:
    unit = Block("p", 1, "ini", "", "[Service]\nExecStart=/venv/bin/tidelog topics list\n")
    assert tidelog_calls(unit.commands) == [["topics", "list"]]
