// The cuts of the lake, and what one of them holds.

import { fill, h, link, mark } from "../base/dom.js";
import { count, text, time } from "../base/format.js";
import { listing, notThere } from "../base/listing.js";
import { facts, Table } from "../base/table.js";

export async function show(context) {
  const [, name] = context.route.parts;
  if (name) return await showOne(context, name);
  const table = {
    caption: "Cuts",
    key: (row) => row.name,
    sort: "time",
    descending: true,
    columns: [
      { name: "name", label: "Cut", sort: (row) => row.name, class: "name", cell: (row) => link(["cuts", row.name], row.name) },
      { name: "time", label: "Made", sort: (row) => row.time_ms, cell: (row) => time(row.time_ms) },
      { name: "topics", label: "Topics", number: true, narrow: false, cell: (row) => count(row.topics) },
      { name: "offsets", label: "Offsets", number: true, cell: (row) => count(row.offsets) },
      { name: "groups", label: "Groups", number: true, narrow: false, cell: (row) => count(row.groups) },
      { name: "kept", label: "Kept", cell: (row) => (row.kept ? mark("kept", "ok") : "") },
    ],
  };
  const missing = notThere("This lake has no cuts.", `tidelog --lake ${context.session.lake} cut create NAME`);
  await listing(context, "Cuts", table, async () => (await context.get(["cuts"])).cuts, { missing });
}

async function showOne(context, name) {
  const cut = await context.get(["cuts", name]);
  const partitions = new Table({
    caption: "Topics",
    key: (row) => `${row.topic}-${row.partition}`,
    columns: [
      { name: "topic", label: "Topic", class: "name", cell: (row) => h("span", { class: "words" }, row.topic) },
      { name: "partition", label: "Partition", number: true, cell: (row) => count(row.partition) },
      { name: "start", label: "Start", number: true, narrow: false, cell: (row) => count(row.start) },
      { name: "end", label: "End", number: true, cell: (row) => count(row.end) },
      { name: "version", label: "Version", number: true, narrow: false, cell: (row) => count(row.version) },
    ],
    empty: "No topic was there.",
  });
  const positions = new Table({
    caption: "Groups",
    key: (row) => `${row.group} ${row.topic}-${row.partition}`,
    columns: [
      { name: "group", label: "Group", class: "name", cell: (row) => h("span", { class: "words" }, row.group) },
      { name: "topic", label: "Topic", cell: (row) => h("span", { class: "words" }, row.topic) },
      { name: "partition", label: "Partition", number: true, cell: (row) => count(row.partition) },
      { name: "position", label: "Position", number: true, cell: (row) => count(row.position) },
    ],
    empty: "No group had read anything.",
  });
  partitions.set(cut.partitions);
  positions.set(cut.positions);
  const about = facts([["Made", time(cut.time_ms)], ["Kept", text(cut.kept ? "yes" : "no")], ["Topics", count(cut.topics)], ["Offsets", count(cut.offsets)], ["Groups", count(cut.groups)]]);
  fill(context.main, h("p", { class: "crumbs" }, link(["cuts"], "Cuts"), " /"), h("h1", { class: "words" }, name), about, h("h2", {}, "Topics"), partitions.node, h("h2", {}, "Groups"), positions.node);
}
