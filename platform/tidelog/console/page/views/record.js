// One record, whole.

import { address, get } from "../base/api.js";
import { copy, dialog, failure } from "../base/dialogs.js";
import { button, field, fill, h, select } from "../base/dom.js";
import { bytes, count, time } from "../base/format.js";
import { facts } from "../base/table.js";

const FORMATS = ["auto", "text", "json", "hex", "avro", "protobuf"];
// A text of many megabytes takes a browser minutes to lay out.
const MOST_SHOWN = 256 * 1024;

/** Open a record of a list: it is asked for whole, and may be shown as other formats. */
export function showRecord(topic, { partition, offset }, format) {
  const place = h("div", { "aria-busy": "true" });
  const chosen = select(FORMATS, format);
  let whole = null;
  const load = async () => {
    place.setAttribute("aria-busy", "true");
    try {
      whole = await get(["topics", topic, "records", partition, offset], { format: chosen.value });
      fill(place, body(topic, whole));
    } catch (error) {
      fill(place, failure(error, load));
    } finally {
      place.setAttribute("aria-busy", "false");
    }
  };
  chosen.addEventListener("change", load);
  load();
  const raw = (part) => h("a", { class: "button", download: true, href: address(["topics", topic, "records", partition, offset, "raw"], { part }) }, `Download the ${part}`);
  return dialog(
    `Partition ${partition}, offset ${offset}`,
    () => [
      h("div", { class: "row" }, field("Shown as", chosen), h("span", { class: "space" }), button("Copy as JSON", () => whole && copy(JSON.stringify(whole, null, 2), "The record")), raw("value"), raw("key")),
      place,
    ],
    { wide: true },
  );
}

function body(topic, record) {
  const shown = facts([
    ["Time", `${time(record.timestamp, { millis: true })} (${record.timestamp_type ?? "CreateTime"})`],
    ["Topic", h("span", { class: "words" }, topic)],
    ["Size", `key ${bytes(record.key?.size ?? 0)}, value ${bytes(record.value?.size ?? 0)}`],
  ]);
  const headers = record.headers.length
    ? h("section", {}, h("h3", {}, "Headers"), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Headers" }, h("table", {}, h("caption", { class: "hidden" }, "Headers"), h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Name"), h("th", { scope: "col" }, "Value"))), h("tbody", {}, record.headers.map(([name, value]) => h("tr", {}, h("td", { class: "words mono" }, name), h("td", { class: "words mono" }, value === null ? h("em", {}, "null") : value.text)))))))
    : null;
  return [shown, part("Key", record.key), part("Value", record.value), headers];
}

function part(label, value) {
  if (value === null) return h("section", {}, h("h3", {}, label), h("p", {}, h("em", { class: "muted" }, "null")));
  const text = value.as === "json" || value.as === "avro" || value.as === "protobuf" ? indented(value.text) : value.text;
  const long = text.length > MOST_SHOWN || value.cut;
  const words = `The first ${bytes(Math.min(text.length, MOST_SHOWN))} of ${bytes(value.size)} are shown. A copy has ${value.cut ? "what the server sent" : "all"}, a download the bytes as they are.`;
  const schema = value.schema === undefined || value.schema === null ? "" : `, schema ${count(value.schema)}`;
  return h(
    "section",
    {},
    h("div", { class: "row" }, h("h3", {}, label), h("small", { class: "muted" }, `${value.as}${schema}, ${bytes(value.size)}`), h("span", { class: "space" }), button(`Copy the ${label.toLowerCase()}`, () => copy(value.text, `The ${label.toLowerCase()}`), { kind: "quiet" })),
    h("pre", { tabindex: "0", role: "region", "aria-label": label, class: "words" }, text.slice(0, MOST_SHOWN)),
    long ? h("p", { class: "muted" }, words) : null,
    value.reason ? h("p", { class: "muted words" }, value.reason) : null,
  );
}

function indented(text) {
  if (text.length > MOST_SHOWN) return text;
  try {
    return JSON.stringify(JSON.parse(text, (_, value, source) => (typeof value === "number" && !Number.isSafeInteger(value) && JSON.rawJSON && source ? JSON.rawJSON(source.source) : value)), null, 2);
  } catch {
    return text;
  }
}
