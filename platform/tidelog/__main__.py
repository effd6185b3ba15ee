"""`python -m tidelog`: the command line."""

from tidelog.cli.main import run

run()
