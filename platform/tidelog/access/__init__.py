"""tidelog.access: the table `__access`: ACLs, credentials, quotas and tenants, and the rules over them."""
