// Which brokers serve the lake.

import { h, mark } from "../base/dom.js";
import { text, time } from "../base/format.js";
import { listing, notThere } from "../base/listing.js";

export async function show(context) {
  const table = {
    caption: "Brokers",
    key: (row) => row.id,
    sort: "id",
    columns: [
      { name: "id", label: "Id", number: true, sort: (row) => row.id, cell: (row) => String(row.id) },
      { name: "address", label: "Listeners", class: "name", cell: (row) => h("span", { class: "words" }, row.listeners.map((at) => `${at.name} ${at.host}:${at.port}`).join(", ")) },
      { name: "rack", label: "Rack", narrow: false, cell: (row) => text(row.rack) },
      { name: "state", label: "State", cell: (row) => mark(row.state, row.state === "running" ? "ok" : "warning") },
      { name: "since", label: "Since", narrow: false, sort: (row) => row.started_ms, cell: (row) => time(row.started_ms) },
    ],
  };
  const missing = notThere("No broker serves this lake. Programs with tidelog's own clients need none; Kafka's clients do.", `tidelog --lake ${context.session.lake} broker start --listener 127.0.0.1:9092`);
  await listing(context, "Brokers", table, async () => (await context.get(["brokers"])).brokers, { missing });
}
