"""Options of the JVMs of tests, which live for minutes and start from the archive that set-up has written."""

from tidelog.spark.class_archive import with_archive

SHORT_LIVED = with_archive("-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
