"""tidelog.cli.perf: `tidelog perf …`."""
