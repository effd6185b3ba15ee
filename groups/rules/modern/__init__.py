"""tidelog.groups.rules.modern: the protocol of groups of the type consumer (KIP-848) as pure rules."""
