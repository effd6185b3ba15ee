// The checker's last result: whether the lake keeps its invariants.

import { write } from "../base/api.js";
import { failure, toast } from "../base/dialogs.js";
import { button, fill, h, mark } from "../base/dom.js";
import { duration, many, text, time } from "../base/format.js";
import { Table } from "../base/table.js";

export async function show(context) {
  const [trouble, about] = [h("div", {}), h("div", { role: "status" })];
  const table = new Table({
    caption: "Findings",
    key: (row) => JSON.stringify(row),
    empty: "Nothing was found.",
    columns: [
      { name: "level", label: "Level", sort: (row) => level(row), cell: (row) => mark(level(row), level(row)) },
      { name: "topic", label: "Topic", sort: (row) => row.topic ?? "", class: "name", cell: (row) => h("span", { class: "words" }, text(row.topic)) },
      { name: "what", label: "What", cell: (row) => [h("span", { class: "words" }, text(row.what)), h("small", { class: "words muted block" }, text(row.where))] },
      { name: "do", label: "What to do", narrow: false, cell: (row) => h("span", { class: "words" }, text(row.todo)) },
    ],
  });
  const run = !context.session.may.describe_cluster ? null : button("Check now", async () => {
    try {
      await write("POST", ["check", "run"], {});
      toast("The check runs");
      await again();
    } catch (error) {
      fill(trouble, failure(error));
    }
  }, { kind: "primary", data: { new: "" } });
  const again = await context.every(async () => {
    const found = await context.get(["check"]);
    if (!about.isConnected) fill(context.main, h("div", { class: "row" }, h("h1", {}, "Check"), h("span", { class: "space" }), run), trouble, about, table.node);
    fill(about, words(found));
    table.node.hidden = found?.state !== "done";
    table.set(found?.result?.findings ?? []);
  }, trouble);
}

function level(row) {
  return row.severity;
}

function words(found) {
  if (!found) return h("p", {}, "The lake has not been checked since this console started. The same as a command: ", h("code", {}, "tidelog check"));
  if (found.state === "running") return h("p", {}, mark("running", "warning"), " The check reads every entry; this takes a while for a large lake.");
  if (found.error) return h("div", { class: "box error" }, h("p", { class: "words" }, found.error));
  const findings = found.result.findings.length;
  return h("p", {}, mark(findings ? many(findings, "finding") : "well", findings ? "error" : "ok"), ` Checked ${time(found.ended_ms)}, in ${duration(found.ended_ms - found.began_ms)}.`);
}
