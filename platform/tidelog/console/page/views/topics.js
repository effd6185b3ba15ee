// Every topic: searched, sorted and paged at the server; made and deleted here.

import { write } from "../base/api.js";
import { form, toast } from "../base/dialogs.js";
import { button, field, fill, h, link, mark, select } from "../base/dom.js";
import { bytes, count, duration, many, rate, text } from "../base/format.js";
import { Table } from "../base/table.js";
import { deleteTopic, showTopic } from "./topic.js";

const PAGE = 100;
const POLICIES = ["delete", "compact", "compact,delete"];

/** The list, or the pages of one topic where the address names one. */
export async function show(context) {
  if (context.route.parts.length > 1) {
    await showTopic(context);
    return;
  }
  const state = { search: context.route.query.get("search") ?? "", sort: "name", order: "asc", offset: 0 };
  const trouble = h("div", {});
  const search = h("input", { type: "search", value: state.search, data: { search: "" }, spellcheck: "false", autocomplete: "off" });
  const [total, pager] = [h("span", { class: "muted", role: "status" }), h("div", { class: "row pager" })];
  const table = new Table({
    caption: "Topics",
    columns: columns(context.session.read_only, () => again()),
    key: (row) => row.name,
    sort: "name",
    empty: "No topic is here, or none matches.",
    onSort: (name, descending) => {
      Object.assign(state, { sort: name, order: descending ? "desc" : "asc", offset: 0 });
      again();
    },
  });
  const load = async () => {
    const asked = state.search;
    const page = await context.get(["topics"], { ...state, limit: PAGE });
    if (asked !== state.search) return;
    if (!table.node.isConnected) {
      const head = h("div", { class: "row" }, h("h1", {}, "Topics"), total, h("span", { class: "space" }), context.session.may.create_topics ? create : null);
      fill(context.main, head, trouble, h("div", { class: "row" }, field("Search", search)), table.node, pager);
    }
    const words = [many(page.total, "topic"), page.internal ? `${count(page.internal)} of them internal` : "", page.unread ? `${count(page.unread)} still to be read` : ""];
    fill(total, words.filter(Boolean).join(", "));
    table.set(page.topics);
    turner(page.total);
  };
  const turner = (number) => {
    const turn = (step) => {
      state.offset = Math.max(0, state.offset + step * PAGE);
      again();
    };
    if (number <= PAGE) fill(pager);
    else {
      const words = `${count(state.offset + 1)}–${count(Math.min(state.offset + PAGE, number))} of ${count(number)}`;
      fill(
        pager,
        button("Previous", () => turn(-1), { disabled: state.offset === 0 }),
        h("span", { class: "muted" }, words),
        button("Next", () => turn(1), { disabled: state.offset + PAGE >= number }),
      );
    }
  };
  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      Object.assign(state, { search: search.value, offset: 0 });
      again();
    }, 150);
  });
  const create = button("New topic", async () => {
    const made = await createTopic();
    if (made) location.hash = `#/topics/${encodeURIComponent(made)}/partitions`;
  }, { kind: "primary", data: { new: "" } });
  const again = await context.every(load, trouble);
}

function columns(read_only, again) {
  return [
    {
      name: "name", label: "Topic", sort: (row) => row.name, class: "name",
      cell: (row) => [link(["topics", row.name, "records"], row.name), row.internal ? [" ", mark("internal")] : null, row.typed ? [" ", mark("typed")] : null],
    },
    { name: "partitions", label: "Partitions", number: true, sort: (row) => row.partitions, narrow: false, cell: (row) => count(row.partitions) },
    { name: "records", label: "Records", number: true, sort: (row) => row.records, cell: (row) => count(row.records) },
    { name: "bytes", label: "Size", number: true, sort: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
    { name: "rate", label: "Rate", number: true, sort: (row) => row.rate, cell: (row) => rate(row.rate) },
    { name: "retention", label: "Retention", number: true, sort: (row) => row.retention_ms, narrow: false, cell: (row) => retention(row) },
    { name: "cleanup", label: "Cleanup", narrow: false, cell: (row) => text(row.cleanup) },
    ...(read_only
      ? []
      : [{ name: "act", label: "Act", narrow: false, cell: (row) => (row.may_delete ? button("Delete", () => deleteTopic(row.name).then((done) => done && again()), { kind: "quiet", "aria-label": `Delete ${row.name}` }) : null) }]),
  ];
}

function retention(row) {
  const size = row.retention_bytes !== null && row.retention_bytes >= 0 ? `, ${bytes(row.retention_bytes)}` : "";
  return `${duration(row.retention_ms)}${size}`;
}

/** Ask for a topic's name, partitions and configuration, and make it. Resolves to its name, or null. */
async function createTopic() {
  const name = h("input", { type: "text", required: true, autofocus: true, autocomplete: "off", spellcheck: "false", maxlength: 249 });
  const partitions = h("input", { type: "number", min: 1, max: 100000, value: "1", required: true });
  const days = h("input", { type: "number", min: -1, step: "any", placeholder: "the lake's default" });
  const cleanup = select([["", "the lake's default"], ...POLICIES], "");
  const more = h("textarea", { rows: "3", spellcheck: "false", placeholder: "segment.bytes=1048576" });
  return await form(
    "New topic",
    [
      field("Name", name, { wide: true, hint: "Letters, digits, dot, underscore and hyphen." }),
      field("Partitions", partitions),
      field("Retention in hours", days, { hint: "-1 keeps records for ever." }),
      field("Cleanup policy", cleanup),
      field("Further configuration, key=value on each line", more, { wide: true }),
    ],
    "Create",
    async () => {
      const config = pairs(more.value);
      if (days.value !== "") config["retention.ms"] = String(Number(days.value) < 0 ? -1 : Math.round(Number(days.value) * 3_600_000));
      if (cleanup.value) config["cleanup.policy"] = cleanup.value;
      await write("POST", ["topics"], { name: name.value, partitions: Number(partitions.value), config });
      toast(`Topic ${name.value} made`);
      return name.value;
    },
  );
}

function pairs(written) {
  const found = {};
  for (const line of written.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`'${line}' is no key=value: write one on each line.`);
    found[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return found;
}
