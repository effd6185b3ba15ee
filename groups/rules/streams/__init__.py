"""tidelog.groups.rules.streams: the protocol of streams groups (KIP-1071) as pure rules."""
