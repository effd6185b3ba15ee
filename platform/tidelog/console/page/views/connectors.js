// Connectors and their tasks, as the workers' topics tell.

import { h, mark } from "../base/dom.js";
import { text } from "../base/format.js";
import { listing, notThere } from "../base/listing.js";

const LEVELS = { RUNNING: "ok", FAILED: "error", PAUSED: "warning", STOPPED: "warning", UNASSIGNED: "warning" };
const MOST_SHOWN = 300;

export async function show(context) {
  const table = {
    caption: "Connectors",
    key: (row) => row.name,
    sort: "name",
    columns: [
      { name: "name", label: "Connector", sort: (row) => row.name, class: "name", cell: (row) => h("span", { class: "words" }, row.name) },
      { name: "type", label: "Kind", narrow: false, cell: (row) => kind(row.config?.["connector.class"]) },
      { name: "state", label: "State", sort: (row) => row.state, cell: (row) => state(row) },
      { name: "worker", label: "Worker", narrow: false, cell: (row) => h("span", { class: "nowrap" }, text(row.worker_id)) },
      { name: "tasks", label: "Tasks", cell: (row) => (row.tasks ?? []).map((task) => h("div", {}, `${task.id} `, state(task))) },
    ],
  };
  const missing = notThere("No connector is configured in this lake.", `tidelog --lake ${context.session.lake} connect start`, "Then make connectors with its REST API.");
  await listing(context, "Connectors", table, async () => (await context.get(["connectors"])).connectors, { missing });
}

/** A connector's class, without its package, which its title has. */
function kind(name) {
  return h("span", { class: "nowrap", title: name ?? "" }, text(name?.split(".").at(-1)));
}

/** The state of a connector or a task, and why it failed: the last line of its trace. */
function state(one) {
  const why = (one.trace ?? "").trim().split("\n").at(-1);
  return [mark(text(one.state), LEVELS[one.state]), why ? h("small", { class: "words muted block" }, why.slice(0, MOST_SHOWN)) : null];
}
