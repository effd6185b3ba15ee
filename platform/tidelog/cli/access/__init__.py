"""tidelog.cli.access: `tidelog user`, `acl`, `quota` and `tenant`."""
