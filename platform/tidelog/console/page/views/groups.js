// Consumer groups: all of them, or the one that the address names.

import { fill, h, link, mark } from "../base/dom.js";
import { count, many, seconds, text } from "../base/format.js";
import { Table } from "../base/table.js";
import { showGroup } from "./group.js";

const LEVELS = { Stable: "ok", Dead: "error", PreparingRebalance: "warning", CompletingRebalance: "warning" };

/** The list, or one group. */
export async function show(context) {
  if (context.route.parts.length > 1) {
    await showGroup(context);
    return;
  }
  const [trouble, total] = [h("div", {}), h("span", { class: "muted", role: "status" })];
  const search = h("input", { type: "search", "aria-label": "Search groups", placeholder: "Search", data: { search: "" }, spellcheck: "false" });
  let rows = [];
  const table = new Table({
    caption: "Groups",
    key: (row) => row.group,
    sort: "group",
    empty: "No group is here, or none matches. A group begins with the first consumer that has a group.id.",
    columns: [
      { name: "group", label: "Group", sort: (row) => row.group, class: "name", cell: (row) => link(["groups", row.group], row.group) },
      { name: "state", label: "State", sort: (row) => row.state, cell: (row) => mark(row.state, LEVELS[row.state]) },
      { name: "protocol", label: "Protocol", narrow: false, cell: (row) => h("span", { class: "words" }, [row.type, row.protocol].filter(Boolean).join(", ") || text(null)) },
      { name: "members", label: "Members", number: true, sort: (row) => size(row.members), cell: (row) => count(size(row.members)) },
      { name: "topics", label: "Topics", number: true, sort: (row) => size(row.topics), narrow: false, cell: (row) => count(size(row.topics)) },
      { name: "lag", label: "Lag", number: true, sort: (row) => row.lag, cell: (row) => count(row.lag) },
      { name: "lag_s", label: "Lag in time", number: true, sort: (row) => row.lag_s, cell: (row) => seconds(row.lag_s) },
    ],
  });
  const draw = () => table.set(rows.filter((row) => row.group.includes(search.value)));
  search.addEventListener("input", draw);
  await context.every(async () => {
    rows = (await context.get(["groups"])).groups;
    if (!table.node.isConnected) fill(context.main, h("div", { class: "row" }, h("h1", {}, "Groups"), total), trouble, h("div", { class: "row" }, search), table.node);
    fill(total, many(rows.length, "group"));
    draw();
  }, trouble);
}

function size(found) {
  return Array.isArray(found) ? found.length : found;
}
