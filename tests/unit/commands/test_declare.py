"""How commands are declared: the options of every command come by themselves, and options may come in groups."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from tidelog.cli.main import app as tidelog
from tidelog.commands.declare import command, family, flat, program
from tidelog.commands.options import Session

COMMON = ["--lake", "--store-option", "--format", "--debug", "--log-format", "--log-level"]


@dataclass(frozen=True, kw_only=True)
class Paint:
    panel: ClassVar[str] = "How it is painted"

    colour: Annotated[str, typer.Option("--colour", help="Of what colour.")]
    coats: Annotated[int, typer.Option("--coats", min=1)] = 2


def made():
    """An application with one family of one command, and what the command was called with."""
    app, houses, calls = typer.Typer(), family("Houses."), []

    @command(houses, "paint", example="app house paint --colour red")
    def paint(call: Session, name: Annotated[str, typer.Argument(metavar="HOUSE")], how: Paint) -> None:
        """Paint a house.

        Not the
        roof.
        """
        calls.append((call.address, call.as_json, call.store, name, how))

    @app.callback()
    def root() -> None: ...

    app.add_typer(houses, name="house")
    return app, calls


def test_a_command_is_given_its_session_and_its_groups_of_options():
    app, calls = made()
    words = ["house", "--lake", "a", "--store-option", "x=1", "paint", "shed", "--colour", "red", "--store-option=y=2"]
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    assert calls == [("a", False, {"x": "1", "y": "2"}, "shed", Paint(colour="red"))]
    again = ["house", "--lake", "a", "paint", "shed", "--lake", "b", "--format", "json", "--colour", "red", "--coats=3"]
    assert CliRunner().invoke(app, again, catch_exceptions=False).exit_code == 0
    assert calls[1] == ("b", True, {}, "shed", Paint(colour="red", coats=3))


def test_an_option_of_a_group_is_checked_as_any_other():
    app, calls = made()
    assert "Missing option '--colour'" in CliRunner().invoke(app, ["house", "paint", "shed"]).output
    assert CliRunner().invoke(app, ["house", "paint", "shed", "--colour", "red", "--coats", "0"]).exit_code == 2
    assert calls == []


def test_help_is_the_docstring_with_an_example():
    text = CliRunner().invoke(made()[0], ["house", "paint", "--help"], env={"COLUMNS": "200"}).output
    assert "Not the roof." in text
    assert "Example: app house paint --colour red" in text


def test_a_group_of_options_has_its_heading_in_the_help():
    text = CliRunner().invoke(made()[0], ["house", "paint", "--help"], env={"COLUMNS": "200"}).output
    own, common = (text.index(heading) for heading in ("How it is painted", "Options of every command"))
    assert text.index("HOUSE") < own < text.index("Of what colour.") < common < text.index("--store-option")


def every_command(group=None, path=()):
    for name, found in (group or get_command(tidelog)).commands.items():
        yield pytest.param(found, id="-".join((*path, name)))
        if hasattr(found, "commands"):
            yield from every_command(found, (*path, name))


@pytest.mark.parametrize("found", [pytest.param(get_command(tidelog), id="tidelog"), *every_command()])
def test_the_options_of_every_command_end_its_help(found):
    assert [option.opts[0] for option in found.params if option.opts != ["--help"]][-len(COMMON) :] == COMMON


def test_a_program_of_one_command_takes_them_too():
    def lone(call: Session, how: Paint) -> None:
        """Paint."""

    main = program("lone", lone, summary="Paint.", example="lone --colour red")
    found = get_command(main.args[0])
    assert [option.opts[0] for option in found.params if option.opts != ["--help"]] == ["--colour", "--coats", *COMMON]
    assert (main(["--colour", "red"]), main(["--color", "red"])) == (0, 2)


def test_two_options_of_one_name_are_refused():
    def twice(call: Session, coats: Annotated[int, typer.Option("--coats")], how: Paint) -> None:
        """Paint."""

    with pytest.raises(ValueError, match="coats"):
        flat(twice)
