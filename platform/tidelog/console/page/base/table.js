// Tables: sorted by their heads, paged, moved through by keys, and changed in place where only some rows differ.

import { button, fill, h } from "./dom.js";
import { count } from "./format.js";

const PAGE = 100;

/**
 * A table. `columns`: {name, label, cell(row), sort(row)?, number?, narrow?: false hides it on phones}. `key(row)` tells
 * rows apart. `onSort(name, descending)` sorts elsewhere (at the server); without it the rows are sorted here.
 * Returns {node, set(rows), sorted}. A row's cells are made anew only where the row changed.
 */
export class Table {
  constructor({ caption, columns, key, empty = "Nothing is here.", sort = null, descending = false, onSort = null, page = PAGE }) {
    Object.assign(this, { columns, key, empty, onSort, page, sort, descending });
    this.rows = [];
    this.at = 0;
    this.made = new Map();
    this.head = h("tr", {}, columns.map((column) => this.#headCell(column)));
    this.body = h("tbody", { on: { keydown: (event) => this.#move(event) } });
    this.table = h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, this.head), this.body);
    this.scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, this.table);
    this.foot = h("div", { class: "row pager" });
    this.node = h("div", { class: "table" }, this.scroll, this.foot);
    this.#showSort();
  }

  /** Show these rows. */
  set(rows) {
    this.rows = rows;
    this.#draw();
  }

  #headCell(column) {
    const side = column.number ? "number" : "";
    const classes = `${side} ${column.narrow === false ? "wide-only" : ""}`.trim();
    if (!column.sort) return h("th", { scope: "col", class: classes }, column.label);
    return h("th", { scope: "col", class: classes }, button(column.label, () => this.#sortBy(column), { kind: "sort" }));
  }

  #sortBy(column) {
    this.descending = this.sort === column.name ? !this.descending : Boolean(column.number);
    this.sort = column.name;
    this.at = 0;
    this.#showSort();
    if (this.onSort) this.onSort(this.sort, this.descending);
    else this.#draw();
  }

  #showSort() {
    this.columns.forEach((column, index) => {
      const cell = this.head.children[index];
      if (column.sort && column.name === this.sort) cell.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
  }

  #ordered() {
    const column = this.columns.find((one) => one.name === this.sort);
    if (this.onSort || !column?.sort) return this.rows;
    const sign = this.descending ? -1 : 1;
    const value = (row) => column.sort(row) ?? (column.number ? -Infinity : "");
    return [...this.rows].sort((a, b) => {
      const [left, right] = [value(a), value(b)];
      return sign * (typeof left === "string" ? left.localeCompare(right, "en", { numeric: true }) : left - right);
    });
  }

  #draw() {
    const ordered = this.#ordered();
    const pages = Math.max(1, Math.ceil(ordered.length / this.page));
    this.at = Math.min(this.at, pages - 1);
    const shown = ordered.slice(this.at * this.page, (this.at + 1) * this.page);
    const made = new Map();
    for (const row of shown) {
      const [id, state] = [String(this.key(row)), JSON.stringify(row)];
      const before = this.made.get(id);
      made.set(id, before?.state === state ? before : { state, row: this.#row(row, before?.row) });
    }
    this.made = made;
    const wanted = [...made.values()].map((one) => one.row);
    if (!wanted.length) wanted.push(h("tr", {}, h("td", { colspan: this.columns.length, class: "empty" }, this.empty)));
    const same = wanted.length === this.body.children.length && wanted.every((row, index) => row === this.body.children[index]);
    if (!same) this.body.replaceChildren(...wanted);
    this.#pager(pages, ordered.length);
  }

  /** A new row; the focus stays where it was in the one that it replaces. */
  #row(row, before) {
    const cells = this.columns.map((column) => {
      const classes = [column.number && "number", column.narrow === false && "wide-only", column.class].filter(Boolean).join(" ");
      return h("td", { class: classes }, column.cell(row));
    });
    const made = h("tr", {}, cells);
    const focused = before?.contains(document.activeElement) ? focusable(before).indexOf(document.activeElement) : -1;
    if (focused >= 0) queueMicrotask(() => focusable(made)[focused]?.focus());
    return made;
  }

  #pager(pages, total) {
    if (pages === 1) {
      fill(this.foot);
      return;
    }
    const turn = (step) => {
      this.at += step;
      this.#draw();
      this.scroll.scrollTop = 0;
    };
    const first = this.at * this.page;
    const words = `${count(first + 1)}–${count(Math.min(first + this.page, total))} of ${count(total)}`;
    fill(
      this.foot,
      button("Previous", () => turn(-1), { disabled: this.at === 0 }),
      h("span", { class: "muted" }, words),
      button("Next", () => turn(1), { disabled: this.at >= pages - 1 }),
    );
  }

  #move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target.closest("tr");
    if (!step || !row || event.target.matches("input, select, textarea")) return;
    const here = focusable(row).indexOf(event.target);
    const next = step > 0 ? row.nextElementSibling : row.previousElementSibling;
    const goal = next && (focusable(next)[here] ?? focusable(next)[0]);
    if (goal) {
      event.preventDefault();
      goal.focus();
    }
  }
}

function focusable(row) {
  return [...row.querySelectorAll("a[href], button:not(:disabled)")];
}

/** Names and values below each other. `pairs`: [label, node or text]. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))));
}
