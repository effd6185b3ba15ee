"""tidelog.cli.mirror: `tidelog mirror …`."""
