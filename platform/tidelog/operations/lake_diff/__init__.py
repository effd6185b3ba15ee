"""tidelog.operations.lake_diff: what differs between two lakes, of which one may be a branch of the other."""
