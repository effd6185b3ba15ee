"""tidelog.cli.consume: `tidelog consume`."""
