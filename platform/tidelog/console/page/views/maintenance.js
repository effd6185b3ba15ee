// Maintenance: what ran, what is due, and running it now.

import { write } from "../base/api.js";
import { failure, toast } from "../base/dialogs.js";
import { button, fill, h, link, mark } from "../base/dom.js";
import { count, duration, text, time } from "../base/format.js";
import { Table } from "../base/table.js";

const MOST_ROWS = 20;

export async function show(context) {
  const [trouble, running] = [h("div", {}), h("div", { role: "status" })];
  const run = (topic) => start(topic, trouble).then(() => again());
  const due = new Table({
    caption: "What is due",
    key: (row) => `${row.topic}/${row.part}`,
    sort: "topic",
    empty: "Nothing is due.",
    columns: [
      { name: "topic", label: "Topic", sort: (row) => row.topic, class: "name", cell: (row) => link(["topics", row.topic, "partitions"], row.topic) },
      { name: "what", label: "What", cell: (row) => h("span", { class: "words" }, `${row.part}: ${text(row.what)}`) },
      { name: "act", label: "Act", cell: (row) => (!context.session.may.alter_cluster ? null : button("Run", () => run(row.topic), { kind: "quiet", "aria-label": `Run maintenance of ${row.topic}` })) },
    ],
  });
  const runs = new Table({
    caption: "Last runs",
    key: (row) => row.run_id,
    sort: "at",
    descending: true,
    empty: "No run is noted. Maintenance runs with `tidelog maintain`, beside brokers that are not started with --no-maintain, or with the button above.",
    columns: [
      { name: "at", label: "Began", sort: (row) => row.at_ms, cell: (row) => time(row.at_ms) },
      { name: "took", label: "Took", number: true, sort: (row) => row.took_ms, cell: (row) => duration(row.took_ms) },
      { name: "topics", label: "Topics", number: true, cell: (row) => (row.whole ? "all" : count(row.topics)) },
      { name: "parts", label: "Parts", narrow: false, cell: (row) => h("span", { class: "words" }, row.parts.join(", ")) },
      { name: "failures", label: "How it went", cell: (row) => (row.failures.length ? [mark("failed", "error"), " ", h("span", { class: "words" }, row.failures.join("; "))] : mark("done", "ok")) },
    ],
  });
  const all = !context.session.may.alter_cluster ? null : button("Run now for every topic", () => run(null), { kind: "primary", data: { new: "" } });
  const again = await context.every(async () => {
    const [found, now] = await Promise.all([context.get(["maintenance"]), context.get(["maintenance", "run"])]);
    if (!due.node.isConnected) {
      fill(context.main, h("div", { class: "row" }, h("h1", {}, "Maintenance"), h("span", { class: "space" }), all), trouble, running, h("h2", {}, "Due"), due.node, h("h2", {}, "Last runs"), runs.node);
    }
    fill(running, state(now));
    due.set(found.due);
    runs.set(found.runs);
  }, trouble);
}

/** The run that this console began last: what it does, or did. */
function state(run) {
  if (!run) return null;
  const failed = run.state === "failed" || run.result?.failed;
  const level = run.state === "running" ? "warning" : failed ? "error" : "ok";
  const rows = (run.result?.rows ?? []).slice(0, MOST_ROWS).map((row) => h("li", { class: "words" }, `${row.topic}: ${row.part}: ${row.what}`));
  return h("div", { class: "box" }, mark(failed ? "failed" : run.state, level), ` ${run.topic ?? "every topic"}, begun ${time(run.began_ms)}`, run.error ? h("p", { class: "words" }, run.error) : null, h("ul", { class: "plain" }, rows));
}

async function start(topic, trouble) {
  try {
    await write("POST", ["maintenance", "run"], { topic });
    toast(`Maintenance of ${topic ?? "every topic"} runs`);
  } catch (error) {
    fill(trouble, failure(error));
  }
}
