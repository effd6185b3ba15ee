"""tidelog.cli.check: `tidelog check`."""
