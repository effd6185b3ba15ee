// SQL over topics: run, wait or cancel, and page through what it gave.

import { get, write } from "../base/api.js";
import { failure } from "../base/dialogs.js";
import { button, field, fill, h, select } from "../base/dom.js";
import { count, many } from "../base/format.js";

const LIMITS = [100, 1000, 10_000];
const PAGE = 200;
const WAIT_MS = 150;
const KEPT = "tidelog.sql";

export async function show(context) {
  const { topics } = await context.get(["topics"], { limit: 200 });
  const first = topics.find((topic) => !topic.internal);
  const given = kept() ?? (first ? `SELECT * FROM ${quoted(first.name)} LIMIT 20` : "SELECT 1");
  const query = h("textarea", { rows: "6", spellcheck: "false", class: "mono", data: { search: "" } });
  query.value = given;
  const limit = select(LIMITS.map((value) => [value, count(value)]), 1000);
  const names = select([["", "…"], ...topics.map((topic) => topic.name)], "");
  const [told, place] = [h("p", { class: "muted", role: "status" }), h("section", { "aria-label": "Rows" })];
  // `turn` counts the runs, and what ended them: what comes of an earlier one is not shown.
  const state = { id: null, turn: 0 };
  const run = button("Run", () => start(), { kind: "primary" });
  const cancel = button("Cancel", () => stop(), { disabled: true });

  const start = async () => {
    state.turn += 1;
    const { turn } = state;
    keep(query.value);
    fill(place);
    fill(told, "Running …");
    busy(true);
    try {
      const { id } = await write("POST", ["sql"], { query: query.value, limit: Number(limit.value) });
      if (state.turn !== turn) return end(id);
      state.id = id;
      const result = await ended(id, turn);
      if (result) answer(result, id);
    } catch (error) {
      if (state.turn !== turn) return;
      fill(told);
      if (error.name !== "AbortError") fill(place, failure(error));
    } finally {
      if (state.turn === turn) busy(false);
    }
  };
  const busy = (running) => {
    run.disabled = running;
    cancel.disabled = !running;
    if (!running) state.id = null;
  };
  const ended = async (id, turn) => {
    while (state.turn === turn) {
      const result = await get(["sql", id], { offset: 0, limit: PAGE }, context.signal);
      if (state.turn === turn && result.state !== "running") return result;
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    }
    return null;
  };
  const end = (id) => id !== null && write("DELETE", ["sql", id]).catch(() => null);
  const stop = () => {
    const { id } = state;
    state.turn += 1;
    busy(false);
    fill(told, "Cancelled.");
    end(id);
  };
  const answer = (result, id) => {
    fill(told, result.state === "done" ? words(result) : "");
    if (result.state === "done") fill(place, new Rows(result, (offset) => context.get(["sql", id], { offset, limit: PAGE })).node);
    else if (result.state === "cancelled") fill(told, "Cancelled.");
    else fill(place, h("div", { class: "box error", role: "alert" }, h("strong", {}, "The query failed"), h("pre", { class: "words" }, result.error)));
  };
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (!run.disabled) start();
    }
  });
  names.addEventListener("change", () => {
    if (names.value) query.setRangeText(quoted(names.value), query.selectionStart, query.selectionEnd, "end");
    names.value = "";
    query.focus();
  });
  context.onLeave(() => {
    state.turn += 1;
    end(state.id);
  });
  fill(
    context.main,
    h("h1", {}, "SQL"),
    h("p", { class: "muted" }, "DuckDB over the topics that you may read; each is a table. Nothing else can be reached: no files, no network."),
    field("Query", query, { wide: true, hint: "Ctrl+Enter runs it." }),
    h("div", { class: "row bottom" }, run, cancel, field("Rows at most", limit), field("Put in a topic's name", names)),
    told,
    place,
  );
}

function words(result) {
  return `${many(result.total, "row")}${result.truncated ? ", and there are more" : ""} in ${result.seconds.toFixed(2)} s`;
}

function quoted(name) {
  return `"${name.replaceAll('"', '""')}"`;
}

function kept() {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

function keep(text) {
  try {
    sessionStorage.setItem(KEPT, text);
  } catch {
    // The query is then lost when the page is left.
  }
}

/** The rows of a result, a page of them at a time. */
class Rows {
  constructor(result, more) {
    Object.assign(this, { result, more, offset: 0 });
    this.node = h("div", { class: "table" });
    this.#draw(result.rows);
  }

  async #turn(step) {
    this.offset = Math.max(0, this.offset + step * PAGE);
    try {
      this.#draw((await this.more(this.offset)).rows);
    } catch (error) {
      fill(this.node, failure(error));
    }
  }

  #draw(given) {
    const rows = given.slice(0, PAGE);
    const { columns, total } = this.result;
    const head = columns.map((column) => h("th", { scope: "col" }, column.name, h("small", { class: "muted block" }, column.type)));
    const body = rows.map((row) => h("tr", {}, row.map((cell) => h("td", { class: "payload mono words" }, cell === null ? h("em", { class: "muted" }, "null") : cell))));
    const last = Math.min(this.offset + rows.length, total);
    fill(
      this.node,
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows of the result" }, h("table", {}, h("caption", { class: "hidden" }, "Rows of the result"), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body))),
      total > PAGE
        ? h("div", { class: "row pager" }, button("Previous", () => this.#turn(-1), { disabled: this.offset === 0 }), h("span", { class: "muted" }, `${count(this.offset + 1)}–${count(last)} of ${count(total)}`), button("Next", () => this.#turn(1), { disabled: last >= total }))
        : null,
    );
  }
}
