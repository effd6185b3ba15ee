// Connectors and their tasks, as the workers' topics tell.

import { h, mark } from "../base/dom.js";
import { text } from "../base/format.js";
import { listing, notThere } from "../base/listing.js";

const LEVELS = { RUNNING: "ok", FAILED: "error", PAUSED: "warning", STOPPED: "warning", UNASSIGNED: "warning" };

export async function show(context) {
  const table = {
    caption: "Connectors",
    key: (row) => row.name,
    sort: "name",
    columns: [
      { name: "name", label: "Connector", sort: (row) => row.name, class: "name", cell: (row) => h("span", { class: "words" }, row.name) },
      { name: "type", label: "Kind", narrow: false, cell: (row) => h("span", { class: "words" }, text(row.config?.["connector.class"])) },
      { name: "state", label: "State", sort: (row) => row.state, cell: (row) => [mark(text(row.state), LEVELS[row.state]), row.trace ? h("small", { class: "words muted block" }, row.trace.slice(0, 300)) : null] },
      { name: "worker", label: "Worker", narrow: false, cell: (row) => h("span", { class: "words" }, text(row.worker_id)) },
      { name: "tasks", label: "Tasks", cell: (row) => (row.tasks ?? []).map((task) => h("div", { title: task.trace ?? "" }, `${task.id} `, mark(text(task.state), LEVELS[task.state]))) },
    ],
  };
  const missing = notThere("No connector is configured in this lake.", `tidelog --lake ${context.session.lake} connect start`, "Then make connectors with its REST API.");
  await listing(context, "Connectors", table, async () => (await context.get(["connectors"])).connectors, { missing });
}
