"""tidelog.cli.metrics: `tidelog metrics`."""
