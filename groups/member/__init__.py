"""tidelog.groups.member: one member's part in its group."""
