"""tidelog.cli.records: records as text and JSON, in and out."""
