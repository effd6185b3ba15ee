// One topic: its head, its tabs, and those tabs that are tables.

import { write } from "../base/api.js";
import { confirmByName, form, toast } from "../base/dialogs.js";
import { button, field, fill, h, link, mark, select } from "../base/dom.js";
import { ago, bytes, count, many, text, time } from "../base/format.js";
import { facts, Table } from "../base/table.js";
import { tabs } from "../base/tabs.js";
import { showRecords } from "./records.js";

const TABS = [
  ["records", "Records", showRecords], ["partitions", "Partitions", showPartitions], ["config", "Configuration", showConfig],
  ["history", "History", showHistory], ["consumers", "Consumers", showConsumers],
];

/** The page of the topic that the address names. */
export async function showTopic(context) {
  const [, name, tab = "records"] = context.route.parts;
  const [, , body] = TABS.find(([one]) => one === tab) ?? TABS[0];
  const about = await context.get(["topics", name]);
  const place = h("section", { "aria-label": tab });
  const bar = h("div", { class: "row" }, about.may.alter ? more(about) : null, about.may.delete ? button("Delete", () => remove(name), { kind: "danger" }) : null);
  const words = [many(about.partitions.length, "partition"), many(sum(about, "records"), "record"), bytes(sum(about, "bytes")), `version ${count(about.version)}`];
  fill(
    context.main,
    h("p", { class: "crumbs" }, link(["topics"], "Topics"), " /"),
    h("div", { class: "row" }, h("h1", { class: "words" }, name), about.typed ? mark("typed") : null, h("span", { class: "muted" }, words.join(" · ")), h("span", { class: "space" }), bar),
    tabs("Parts of the topic", ["topics", name], TABS, tab),
    place,
  );
  await body(context, name, place, about);
}

function sum(about, what) {
  return about.partitions.reduce((all, one) => all + (one[what] ?? 0), 0);
}

async function remove(name) {
  if (await deleteTopic(name)) location.hash = "#/topics";
}

function more(about) {
  return button("Add partitions", async () => {
    const wanted = h("input", { type: "number", min: about.partitions.length + 1, value: String(about.partitions.length + 1), required: true, autofocus: true });
    const done = await form(
      "Add partitions",
      [h("p", {}, "Keys of new records may go to other partitions than before. Partitions cannot be taken away again."), field("Partitions in all", wanted)],
      "Add",
      async () => {
        await write("PATCH", ["topics", about.name], { partitions: Number(wanted.value) });
        toast(`${about.name} has ${wanted.value} partitions`);
        return true;
      },
    );
    if (done) dispatchEvent(new HashChangeEvent("hashchange"));
  });
}

async function showPartitions(context, name, place) {
  const table = new Table({
    caption: `Partitions of ${name}`,
    key: (row) => row.partition,
    sort: "partition",
    columns: [
      { name: "partition", label: "Partition", number: true, sort: (row) => row.partition, cell: (row) => h("a", { href: `#/topics/${encodeURIComponent(name)}/records?partition=${row.partition}` }, count(row.partition)) },
      { name: "start", label: "Start", number: true, sort: (row) => row.start, narrow: false, cell: (row) => count(row.start) },
      { name: "end", label: "End", number: true, sort: (row) => row.end, cell: (row) => count(row.end) },
      { name: "records", label: "Records", number: true, sort: (row) => row.records, cell: (row) => count(row.records) },
      { name: "bytes", label: "Size", number: true, sort: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
      { name: "segments", label: "Segments", number: true, sort: (row) => row.segments, narrow: false, cell: (row) => count(row.segments) },
      { name: "newest", label: "Newest", sort: (row) => row.newest_ms, narrow: false, cell: (row) => h("span", { title: time(row.newest_ms) }, ago(row.newest_ms)) },
    ],
  });
  await context.every(async () => {
    const about = await context.get(["topics", name]);
    if (!table.node.isConnected) {
      const shown = facts([["Topic's id", h("code", {}, text(about.id))], ["Table", h("code", { class: "words" }, text(about.table))], ["Version", count(about.version)], ["Groups that read it", count(about.groups)]]);
      fill(place, shown, table.node);
    }
    table.set(about.partitions);
  });
}

async function showConfig(context, name, place, about) {
  const only = select([["all", "every key"], ["topic", "set for this topic"], ["changed", "not the default"]], "all");
  const search = h("input", { type: "search", data: { search: "" }, spellcheck: "false" });
  let rows = [];
  const load = async () => {
    rows = (await context.get(["topics", name, "config"])).configs;
    draw();
  };
  const table = new Table({
    caption: `Configuration of ${name}`,
    key: (row) => row.name,
    sort: "name",
    columns: [
      { name: "name", label: "Key", sort: (row) => row.name, class: "name", cell: (row) => [h("code", {}, row.name), h("small", { class: "muted block" }, row.doc)] },
      { name: "value", label: "Value", cell: (row) => h("code", { class: "words" }, row.sensitive ? "(hidden)" : text(row.value)) },
      { name: "default", label: "Default", narrow: false, cell: (row) => h("code", { class: "words" }, text(row.default)) },
      { name: "source", label: "From", sort: (row) => row.source, cell: (row) => mark(row.source, row.source === "topic" ? "ok" : "") },
      ...(!about.may.alter_configs ? [] : [{ name: "act", label: "Act", cell: (row) => (row.read_only ? null : button("Change", () => change(name, row).then((done) => done && load()), { kind: "quiet", "aria-label": `Change ${row.name}` })) }]),
    ],
  });
  const draw = () => {
    const wanted = (row) => only.value === "all" || (only.value === "topic" ? row.source === "topic" : row.value !== row.default);
    table.set(rows.filter((row) => wanted(row) && row.name.includes(search.value.trim())));
  };
  only.addEventListener("change", draw);
  search.addEventListener("input", draw);
  await load();
  fill(place, h("div", { class: "row" }, field("Search", search), field("Show", only)), table.node);
}

async function change(name, row) {
  const value = h("input", { type: "text", value: row.sensitive ? "" : (row.value ?? ""), autofocus: true, spellcheck: "false" });
  const save = async (body) => {
    await write("PATCH", ["topics", name, "config"], body);
    toast(`${row.name} changed`);
    return true;
  };
  const about = [h("p", {}, row.doc), field("Value", value, { wide: true, hint: `Default: ${text(row.default)}. Kind: ${text(row.type)}.` })];
  const extra = row.source === "topic" ? { "Take the default": () => save({ set: {}, reset: [row.name] }) } : {};
  return await form(`Change ${row.name}`, about, "Save", () => save({ set: { [row.name]: value.value }, reset: [] }), { extra });
}

async function showHistory(context, name, place) {
  const table = new Table({
    caption: `Versions of the table of ${name}`,
    key: (row) => row.version,
    columns: [
      { name: "version", label: "Version", number: true, cell: (row) => count(row.version) },
      { name: "at", label: "When", cell: (row) => time(row.at_ms) },
      { name: "operation", label: "Operation", cell: (row) => text(row.operation) },
      { name: "who", label: "Who", narrow: false, cell: (row) => h("span", { class: "words" }, text(row.who)) },
      { name: "what", label: "What", cell: (row) => h("span", { class: "words" }, text(row.what)) },
    ],
  });
  await context.every(async () => {
    const { entries } = await context.get(["topics", name, "history"], { limit: 200 });
    if (!table.node.isConnected) fill(place, h("p", { class: "muted" }, "The newest 200 versions that are still kept."), table.node);
    table.set(entries);
  });
}

async function showConsumers(context, name, place) {
  const table = new Table({
    caption: `Groups that read ${name}`,
    key: (row) => row.group,
    sort: "group",
    empty: "No group has committed offsets of this topic.",
    columns: [
      { name: "group", label: "Group", sort: (row) => row.group, class: "name", cell: (row) => link(["groups", row.group], row.group) },
      { name: "state", label: "State", cell: (row) => mark(row.state, row.state === "Stable" ? "ok" : "") },
      { name: "members", label: "Members", number: true, sort: (row) => row.members, cell: (row) => count(row.members) },
      { name: "lag", label: "Lag", number: true, sort: (row) => row.lag, cell: (row) => count(row.lag) },
    ],
  });
  await context.every(async () => {
    const { groups } = await context.get(["topics", name, "consumers"]);
    if (!table.node.isConnected) fill(place, table.node);
    table.set(groups);
  });
}

/** Delete a topic once its name was typed. Resolves to true where it is gone. */
export async function deleteTopic(name) {
  return await confirmByName("topic", name, "All its records are deleted with it, for every reader.", async (typed) => {
    await write("DELETE", ["topics", name], { confirm: typed });
    toast(`Topic ${name} deleted`);
    return true;
  });
}

