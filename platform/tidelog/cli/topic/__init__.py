"""tidelog.cli.topic: `tidelog topic …`."""
