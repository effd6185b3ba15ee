// What this lake follows, and how far behind it is.

import { h, mark } from "../base/dom.js";
import { bytes, count, duration, text } from "../base/format.js";
import { listing, notThere } from "../base/listing.js";

export async function show(context) {
  const table = {
    caption: "Mirrors",
    key: (row) => `${row.source} ${row.run}`,
    columns: [
      { name: "source", label: "Follows", class: "name", cell: (row) => h("span", { class: "words" }, text(row.source)) },
      { name: "behind", label: "Behind", number: true, cell: (row) => duration(row.lag_ms) },
      { name: "entries", label: "Entries to ship", number: true, cell: (row) => count(row.behind_entries) },
      { name: "bytes", label: "To ship", number: true, narrow: false, cell: (row) => bytes(row.behind_bytes) },
      { name: "age", label: "Said", narrow: false, cell: (row) => `${duration(row.age_ms)} ago` },
      { name: "state", label: "State", cell: (row) => [mark(row.ended ? "ended" : "running", row.ended ? "warning" : "ok"), row.problem ? h("small", { class: "words block" }, row.problem) : null] },
    ],
  };
  const missing = notThere("This lake follows no other one.", `tidelog mirror start --from SOURCE --to ${context.session.lake}`);
  await listing(context, "Mirrors", table, async () => (await context.get(["mirrors"])).mirrors, { missing });
}
