"""tidelog.cli.doctor: `tidelog doctor`."""
