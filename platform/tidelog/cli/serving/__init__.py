"""tidelog.cli.serving: what commands that start servers share: settings of files and of the environment."""
