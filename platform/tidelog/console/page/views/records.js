// Records of a topic: paged by offset and time, filtered, followed as they come, copied, downloaded, produced.

import { address } from "../base/api.js";
import { button, field, fill, h, select } from "../base/dom.js";
import { many, time } from "../base/format.js";
import { produce } from "./produce.js";
import { showRecord } from "./record.js";

const LIMITS = [25, 50, 100, 200];
const FORMATS = ["auto", "text", "json", "hex", "avro", "protobuf"];
const STARTS = [["latest", "the newest"], ["earliest", "the oldest"], ["offset", "an offset"], ["time", "a time"]];
const MOST_LIVE = 500;

/** The records of a topic: what is asked for stands in the address, so that a page can be sent to others. */
export function showRecords(context, name, place, about) {
  const query = context.route.query;
  const form = controls(query, about);
  // `asks` counts what was asked for: an answer that comes after a later question, or after a tail began, is dropped.
  const state = { asks: 0, live: null };
  const told = h("p", { class: "muted", role: "status" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const list = new RecordList(name, () => form.format.value);
  const [older, newer] = [button("← Before", () => turn("previous")), button("After →", () => turn("next"))];
  const live = button("Live tail", () => (state.live ? stop() : follow()), { data: { live: "" }, "aria-pressed": "false" });

  const load = async (cursor = null) => {
    stop();
    const ask = (state.asks += 1);
    fill(wrong);
    place.setAttribute("aria-busy", "true");
    try {
      const asked = { ...filters(form), limit: form.limit.value, ...(cursor ? { cursor, direction: direction(form) } : start(form)) };
      const page = await context.get(["topics", name, "records"], asked);
      if (ask !== state.asks) return;
      state.page = page;
      list.set(page.records);
      fill(told, words(page));
    } catch (error) {
      if (error.name === "AbortError" || ask !== state.asks) return;
      fill(wrong, error.message);
    } finally {
      if (ask === state.asks) {
        place.setAttribute("aria-busy", "false");
        older.disabled = !state.page?.previous;
        newer.disabled = !state.page?.next;
      }
    }
  };
  const turn = (way) => load(state.page[way]);
  const follow = () => {
    state.asks += 1;
    place.setAttribute("aria-busy", "false");
    fill(wrong);
    state.live = new Tail(context, name, filters(form), list, told, stop);
    older.disabled = newer.disabled = true;
    live.setAttribute("aria-pressed", "true");
    live.textContent = "Stop the tail";
  };
  const stop = () => {
    state.live?.stop();
    state.live = null;
    live.setAttribute("aria-pressed", "false");
    live.textContent = "Live tail";
  };
  const submit = (event) => {
    event.preventDefault();
    keepAddress(name, form);
    load();
  };
  const download = (format) => h("a", { class: "button", download: true, on: { click: (event) => {
    event.currentTarget.href = address(["topics", name, "download"], { format, ...filters(form), from: form.start.value === "latest" ? "" : start(form).from });
  } }, href: address(["topics", name, "download"], { format }) }, format === "jsonl" ? "JSON lines" : "Parquet");
  const writes = !about.may.write ? null : button("Produce", async () => {
    if (await produce(name) && !state.live) await load();
  }, { kind: "primary", data: { new: "" } });
  context.onLeave(stop);
  fill(
    place,
    h("form", { class: "filters", on: { submit } }, form.nodes, h("div", { class: "row end" }, h("button", { type: "submit", class: "primary" }, "Show"), live)),
    h("div", { class: "row" }, older, newer, told, h("span", { class: "space" }), h("span", { class: "muted" }, "Download"), download("jsonl"), download("parquet"), writes),
    wrong,
    list.node,
  );
  return load();
}

function controls(query, about) {
  const text = (name, properties = {}) => h("input", { type: "text", value: query.get(name) ?? "", spellcheck: "false", autocomplete: "off", ...properties });
  const asked = query.get("from") ?? "latest";
  const kind = asked.startsWith("time:") ? "time" : /^\d+$/.test(asked) ? "offset" : asked;
  const found = {
    partition: h("input", { type: "number", min: 0, max: about.partitions.length - 1, placeholder: `all ${about.partitions.length}`, value: query.get("partition") ?? "" }),
    start: select(STARTS, kind),
    offset: h("input", { type: "number", min: 0, value: kind === "offset" ? asked : "0" }),
    time: h("input", { type: "datetime-local", step: "1", value: kind === "time" ? localTime(Number(asked.slice(5))) : localTime(Date.now() - 3_600_000) }),
    key: text("key"), text: text("text", { data: { search: "" } }), header: text("header", { placeholder: "name:text" }), path: text("path", { placeholder: "$.a.b=text" }),
    format: select(FORMATS, query.get("format") ?? "auto"),
    limit: select(LIMITS, query.get("limit") ?? 50),
  };
  const [offset, at] = [field("Offset", found.offset), field("Time", found.time)];
  const choose = () => {
    offset.hidden = found.start.value !== "offset";
    at.hidden = found.start.value !== "time";
  };
  found.start.addEventListener("change", choose);
  choose();
  found.nodes = [
    field("Partition", found.partition), field("From", found.start), offset, at, field("Key holds", found.key), field("Value holds", found.text),
    field("Header", found.header), field("JSON path", found.path), field("Shown as", found.format), field("Records", found.limit),
  ];
  return found;
}

function localTime(ms) {
  return time(ms).replace(" ", "T");
}

function start(form) {
  if (form.start.value === "offset") return { from: form.offset.value || "0", direction: "forward" };
  if (form.start.value === "time") return { from: `time:${new Date(form.time.value).getTime()}`, direction: "forward" };
  return { from: form.start.value, direction: direction(form) };
}

function direction(form) {
  return form.start.value === "latest" ? "backward" : "forward";
}

function filters(form) {
  const found = {};
  for (const name of ["partition", "key", "header", "text", "path"]) if (form[name].value !== "") found[name] = form[name].value;
  if (form.format.value !== "auto") found.format = form.format.value;
  return found;
}

function keepAddress(name, form) {
  const asked = new URLSearchParams({ ...filters(form), from: start(form).from, limit: form.limit.value });
  history.replaceState(null, "", `#/topics/${encodeURIComponent(name)}/records?${asked}`);
}

function words(page) {
  const looked = page.looked_at > page.records.length ? `, ${many(page.looked_at, "record")} looked at` : "";
  const more = !page.ended && page.looked_at > page.records.length && page.next ? "; there are more to look at" : "";
  return `${many(page.records.length, "record")}${looked}${more}`;
}

/** A table of records. A record's button opens it whole. */
class RecordList {
  constructor(topic, format) {
    Object.assign(this, { topic, format });
    this.body = h("tbody", { on: { keydown: rove } });
    const head = ["Partition", "Offset", "Time", "Key", "Value", "Headers"].map((label, index) => h("th", { scope: "col", class: [index < 2 && "number", index === 5 && "wide-only"].filter(Boolean).join(" ") }, label));
    const caption = `Records of ${topic}`;
    const table = h("table", { class: "records" }, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, head)), this.body);
    this.node = h("div", { class: "table" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table));
  }

  set(records) {
    fill(this.body, records.length ? records.map((one) => this.row(one)) : h("tr", {}, h("td", { colspan: 6, class: "empty" }, "No record is here, or none matches.")));
  }

  /** Put new records on top, the newest first; the oldest go. */
  add(records) {
    if (this.body.firstElementChild?.querySelector(".empty")) fill(this.body);
    this.body.prepend(...records.map((one) => this.row(one)).reverse());
    while (this.body.children.length > MOST_LIVE) this.body.lastElementChild.remove();
  }

  row(record) {
    const open = button(String(record.offset), () => showRecord(this.topic, record, this.format()), { kind: "plain", "aria-label": `Open record ${record.offset} of partition ${record.partition}` });
    const headers = record.headers.map(([name, value]) => h("span", { class: "chip words" }, `${name}: ${value === null ? "null" : value.text}`));
    return h(
      "tr",
      { data: { at: `${record.partition}-${record.offset}` } },
      h("td", { class: "number" }, String(record.partition)),
      h("td", { class: "number" }, open),
      h("td", { class: "nowrap" }, time(record.timestamp, { millis: true })),
      h("td", { class: "payload" }, value(record.key)),
      h("td", { class: "payload" }, value(record.value)),
      h("td", { class: "wide-only" }, headers),
    );
  }
}

function rove(event) {
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  const goal = step && event.target.closest("tr")?.[step]?.querySelector("button");
  if (goal) {
    event.preventDefault();
    goal.focus();
  }
}

const PREVIEW = 400;

/** A key or value in a list: its beginning, as text. */
function value(found) {
  if (found === null) return h("em", { class: "muted" }, "null");
  if (found.size === 0) return h("em", { class: "muted" }, "empty");
  const cut = found.cut || found.text.length > PREVIEW;
  return [found.as === "text" || found.as === "json" ? null : h("small", { class: "muted" }, `${found.as} `), h("span", { class: "words mono" }, found.text.slice(0, PREVIEW), cut ? "…" : null)];
}

/** Records as they come. The server drops what is too much for a page, and says how many. */
class Tail {
  constructor(context, name, asked, list, told, ended) {
    Object.assign(this, { list, told, seen: 0, dropped: 0, waiting: [], drawn: false });
    list.set([]);
    fill(told, "Connecting …");
    this.source = new EventSource(address(["topics", name, "tail"], asked));
    // The first comes as soon as the server follows the topic.
    this.source.addEventListener("heartbeat", () => this.#say());
    this.source.addEventListener("record", (event) => {
      this.waiting.push(JSON.parse(event.data));
      this.seen += 1;
      this.#draw();
    });
    this.source.addEventListener("dropped", (event) => {
      this.dropped += JSON.parse(event.data).count;
      this.#draw();
    });
    this.source.addEventListener("error", () => {
      if (this.source.readyState !== EventSource.CLOSED) {
        fill(told, "The connection broke; it is made again.");
        return;
      }
      ended();
      fill(told, "The server refused the tail, or ended it: show the records to see why.");
    });
  }

  stop() {
    this.source.close();
  }

  /** At most once a frame; a page that is not shown keeps the newest only. */
  #draw() {
    if (this.waiting.length > MOST_LIVE) this.waiting.splice(0, this.waiting.length - MOST_LIVE);
    if (this.drawn) return;
    this.drawn = true;
    requestAnimationFrame(() => {
      this.drawn = false;
      this.list.add(this.waiting.splice(0));
      this.#say();
    });
  }

  #say() {
    const dropped = this.dropped ? `, ${many(this.dropped, "record")} left out (too many a second)` : "";
    fill(this.told, `Live: ${many(this.seen, "record")} since the tail began${dropped}.`);
  }
}
