// A form that sends one record.

import { write } from "../base/api.js";
import { form, toast } from "../base/dialogs.js";
import { button, field, h, select } from "../base/dom.js";
import { count } from "../base/format.js";

const KINDS = [["text", "text"], ["base64", "base64"], ["null", "null"]];

/** Ask for a record and send it. Resolves to {partition, offset}, or null. */
export async function produce(topic) {
  const key = payload("Key", 2, "null");
  const value = payload("Value", 6, "text");
  const partition = h("input", { type: "number", min: 0, placeholder: "by the key" });
  const headers = h("div", {});
  const add = () => headers.append(header());
  const sent = await form(
    "Produce a record",
    [key.node, value.node, field("Partition", partition), h("fieldset", {}, h("legend", {}, "Headers"), headers, button("Add a header", add, { kind: "quiet" }))],
    "Produce",
    async () =>
      await write("POST", ["topics", topic, "records"], {
        partition: partition.value === "" ? null : Number(partition.value),
        key: key.read(),
        value: value.read(),
        headers: [...headers.children].map((row) => [row.querySelector("[name=name]").value, { text: row.querySelector("[name=value]").value }]),
      }),
    { wide: true },
  );
  if (sent) toast(`Produced to partition ${count(sent.partition)}, offset ${count(sent.offset)}`);
  return sent;
}

function payload(label, rows, kind) {
  const text = h("textarea", { rows, spellcheck: "false", autofocus: label === "Value" });
  const as = select(KINDS, kind);
  const choose = () => {
    text.disabled = as.value === "null";
  };
  as.addEventListener("change", choose);
  choose();
  const node = h("div", { class: "row top" }, field(label, text, { wide: true }), field(`${label} is`, as));
  return { node, read: () => (as.value === "null" ? null : { [as.value]: text.value }) };
}

function header() {
  const row = h(
    "div",
    { class: "row" },
    field("Name", h("input", { type: "text", name: "name", required: true })),
    field("Value", h("input", { type: "text", name: "value" })),
    button("Remove", () => row.remove(), { kind: "quiet" }),
  );
  return row;
}
