"""tidelog.cli.broker: `tidelog broker …`."""
