"""Who is who, what each may do and how much: credentials, access control lists and quotas of a cluster's principals."""
