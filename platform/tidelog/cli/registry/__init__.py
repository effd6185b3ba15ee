"""tidelog.cli.registry: `tidelog registry …`."""
