"""tidelog.cli.group: `tidelog group …`."""
