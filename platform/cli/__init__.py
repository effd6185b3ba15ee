"""The command line: `tidelog`."""
