"""tidelog.console.records: records of a topic: found, filtered, shown, downloaded, produced."""
