// A page that is one table, and what it says where the table is empty.

import { fill, h } from "./dom.js";
import { Table } from "./table.js";

/** How to start what isn't there: `what` is missing, `command` starts it. */
export function notThere(what, command, words = "") {
  return h("div", { class: "box" }, h("p", {}, what), h("p", {}, "Start one with ", h("code", { class: "words" }, command), words ? `. ${words}` : ""));
}

/**
 * Show a title and a table, kept up to date. `ask()` gives the rows; `missing`: what to show in place of an empty table.
 */
export async function listing(context, title, table, ask, { missing = null, note = "" } = {}) {
  const [trouble, place] = [h("div", {}), h("div", {})];
  const made = new Table(table);
  const again = await context.every(async () => {
    const rows = await ask();
    if (!place.isConnected) fill(context.main, h("h1", {}, title), trouble, note ? h("p", { class: "muted" }, note) : null, place);
    if (!rows.length && missing) fill(place, missing);
    else if (!made.node.isConnected) fill(place, made.node);
    made.set(rows);
  }, trouble);
  return again;
}
