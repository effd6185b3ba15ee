// Shortcuts: `g` and a letter goes to a page, the others act on the page that is shown.

import { dialog } from "./dialogs.js";
import { h } from "./dom.js";

const PAGES = {
  o: "overview", t: "topics", g: "groups", s: "sql", x: "transactions", p: "producers", m: "maintenance",
  c: "check", d: "doctor", b: "brokers", r: "schemas", k: "connectors", i: "mirrors",
  u: "cuts",
};
const WAIT_MS = 1500;

/** Listen for shortcuts. */
export function listen() {
  let pending = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest?.("input, select, textarea, dialog") && event.key !== "Escape") return;
    const then = Date.now() - pending < WAIT_MS;
    pending = 0;
    if (then && PAGES[event.key]) go(event, () => { location.hash = `#/${PAGES[event.key]}`; });
    else if (event.key === "g") pending = Date.now();
    else if (event.key === "?") go(event, help);
    else if (event.key === "/") go(event, () => document.querySelector("main [data-search]")?.focus());
    else if (event.key === "n") go(event, () => document.querySelector("main [data-new]")?.click());
    else if (event.key === "l") go(event, () => document.querySelector("main [data-live]")?.click());
    else if (event.key === "j") go(event, () => document.querySelector("main tbody a, main tbody button")?.focus());
    else if (event.key === "Escape" && event.target.matches?.("main input, main select, main textarea")) event.target.blur();
  });
}

function go(event, act) {
  event.preventDefault();
  act();
}

/** The dialog that lists every shortcut. */
export function help() {
  const rows = [
    ...Object.entries(PAGES).map(([key, page]) => [["g", key], `go to ${page === "sql" ? "SQL" : page}`]),
    [["/"], "search, or filter records"],
    [["n"], "make one: a topic, a record"],
    [["l"], "start or stop the live tail"],
    [["j"], "go to the first row of the table"],
    [["↓"], "next row; ↑ the one before"],
    [["→"], "next tab; ← the one before"],
    [["Ctrl", "Enter"], "run the SQL"],
    [["Esc"], "close a dialog, leave a field"],
    [["?"], "this list"],
  ];
  return dialog("Keys", () =>
    h("table", { class: "keys" }, h("caption", { class: "hidden" }, "Shortcuts"),
      h("thead", { class: "hidden" }, h("tr", {}, h("th", { scope: "col" }, "Keys"), h("th", { scope: "col" }, "What they do"))),
      h("tbody", {}, rows.map(([keys, what]) => h("tr", {}, h("td", {}, keys.map((key) => h("kbd", {}, key))), h("td", {}, what))))),
  );
}
