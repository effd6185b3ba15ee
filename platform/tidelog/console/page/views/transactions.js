// Transactions that are open, and those that are stuck.

import { write } from "../base/api.js";
import { form, toast } from "../base/dialogs.js";
import { button, fill, h, mark } from "../base/dom.js";
import { count, duration, many, seconds, text, time } from "../base/format.js";
import { facts, Table } from "../base/table.js";

export async function show(context) {
  const [trouble, about] = [h("div", {}), h("div", {})];
  const columns = [
    { name: "id", label: "Transactional id", sort: (row) => row.transactional_id, class: "name", cell: (row) => h("span", { class: "words" }, row.transactional_id) },
    { name: "state", label: "State", sort: (row) => row.state, cell: (row) => [mark(row.state), row.stuck ? [" ", mark("stuck", "error")] : null] },
    { name: "began", label: "Began", sort: (row) => row.began_ms, narrow: false, cell: (row) => time(row.began_ms) },
    { name: "age", label: "Age", number: true, sort: (row) => row.age_s, cell: (row) => seconds(row.age_s) },
    { name: "timeout", label: "Times out after", number: true, narrow: false, cell: (row) => duration(row.timeout_ms) },
    { name: "partitions", label: "Partitions", cell: (row) => h("span", { class: "words" }, parts(row.partitions)) },
    { name: "act", label: "Act", cell: (row) => (!context.session.may.alter_cluster ? null : button("Abort", () => abort(row).then((done) => done && again()), { kind: "quiet", "aria-label": `Abort ${row.transactional_id}` })) },
  ];
  const table = new Table({ caption: "Open transactions", key: (row) => row.transactional_id, columns, sort: "age", descending: true, empty: "No transaction is open." });
  const again = await context.every(async () => {
    const found = await context.get(["transactions"]);
    if (!table.node.isConnected) fill(context.main, h("h1", {}, "Transactions"), trouble, about, h("h2", {}, "Open"), table.node);
    fill(about, facts([["Open", count(found.open.length)], ["Stuck", count(found.open.filter((row) => row.stuck).length)], ["Decided, not yet applied", count(size(found.undone))], ["Transactional ids", count(size(found.ids))]]));
    table.set(found.open);
  }, trouble);
}

function size(found) {
  return Array.isArray(found) ? found.length : found;
}

function parts(found) {
  if (!Array.isArray(found)) return text(found);
  const words = found.slice(0, 8).map((one) => (typeof one === "object" ? `${one.topic}-${one.partition ?? one.partitions}` : one));
  return words.join(", ") + (found.length > 8 ? ` and ${many(found.length - 8, "other")}` : "");
}

async function abort(row) {
  return await form(
    "Abort a transaction",
    [h("p", {}, "Its records stay invisible to readers of committed records. Its producer is fenced, and fails at its next request."), h("p", {}, h("code", { class: "words" }, row.transactional_id))],
    "Abort it",
    async () => {
      await write("POST", ["transactions", "abort"], { transactional_id: row.transactional_id });
      toast(`Transaction ${row.transactional_id} aborted`);
      return true;
    },
    { kind: "danger" },
  );
}
