"""tidelog.cli.transaction: `tidelog transaction …` and `tidelog producer …`."""
