"""tidelog.cli.console: `tidelog console`."""
