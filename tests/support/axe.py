"""axe-core, which judges what people with assistive technology get of a page."""

from pathlib import Path

from support.kafka_clients import KafkaClient, run_command


def _make_axe(client: KafkaClient, folder: Path) -> None:
    run_command(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"axe-core@{client.version}"], folder)


# No client of Kafka's, but installed in the same way.
AXE = KafkaClient("axe-core", "4.14.1", "npm", _make_axe, lambda folder: [folder / "node_modules/axe-core/axe.min.js"])
