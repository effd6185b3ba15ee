// Idempotent and transactional producers, as topics know them.

import { field, fill, h, select } from "../base/dom.js";
import { ago, count, time } from "../base/format.js";
import { Table } from "../base/table.js";

export async function show(context) {
  const { topics } = await context.get(["topics"], { limit: 1000 });
  const asked = context.route.query.get("topic");
  const chosen = select(topics.map((topic) => topic.name), asked ?? topics.find((topic) => !topic.internal)?.name);
  const [trouble, place] = [h("div", {}), h("div", {})];
  const table = new Table({
    caption: "Producers",
    key: (row) => `${row.topic ?? ""}/${row.producer_id}/${row.partition}`,
    sort: "last",
    descending: true,
    empty: "No idempotent producer has written to this topic lately.",
    columns: [
      { name: "id", label: "Producer's id", number: true, sort: (row) => row.producer_id, cell: (row) => String(row.producer_id) },
      { name: "epoch", label: "Epoch", number: true, cell: (row) => count(row.epoch) },
      { name: "partition", label: "Partition", number: true, sort: (row) => row.partition, cell: (row) => count(row.partition) },
      { name: "sequence", label: "Last sequence", number: true, cell: (row) => count(row.last_sequence) },
      { name: "last", label: "Last write", sort: (row) => row.last_ms, cell: (row) => h("span", { title: time(row.last_ms) }, ago(row.last_ms)) },
    ],
  });
  if (!topics.length) {
    fill(context.main, h("h1", {}, "Producers"), h("p", {}, "No topic is here yet."));
    return;
  }
  const again = await context.every(async () => {
    const { producers } = await context.get(["producers"], { topic: chosen.value });
    if (!place.isConnected) fill(context.main, h("h1", {}, "Producers"), trouble, h("div", { class: "row" }, field("Topic", chosen)), place);
    if (!table.node.isConnected) fill(place, table.node);
    table.set(producers);
  }, trouble);
  chosen.addEventListener("change", () => again());
}
