"""tidelog.cli.demo: `tidelog demo`."""
