"""tidelog.cli.produce: `tidelog produce`."""
