"""tidelog.cli.rewind: `tidelog topic rewind`, `tidelog lake rewind`."""
