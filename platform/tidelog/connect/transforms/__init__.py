"""Connect's single message transformations and predicates, as functions from records to records."""
