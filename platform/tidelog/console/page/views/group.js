// One group: its members, its lag by partition and over time, and where it is to read from next.

import { write } from "../base/api.js";
import { Chart } from "../base/chart.js";
import { confirmByName, form, toast } from "../base/dialogs.js";
import { button, field, fill, h, link, mark, select } from "../base/dom.js";
import { count, many, seconds, shortCount, text, time } from "../base/format.js";
import { facts, Table } from "../base/table.js";

const GOALS = [["earliest", "the oldest record"], ["latest", "the end"], ["offset", "an offset"], ["time", "a time"], ["shift", "so many records on (or back, with a minus)"]];

/** The page of the group that the address names. */
export async function showGroup(context) {
  const name = context.route.parts[1];
  const [trouble, head, since] = [h("div", {}), h("div", {}), h("p", { class: "muted" })];
  const chart = new Chart("Lag by topic", shortCount);
  context.onLeave(() => chart.stop());
  const [members, partitions] = [memberTable(name), partitionTable(name)];
  let group = null;
  const again = await context.every(async () => {
    const [found, history] = await Promise.all([context.get(["groups", name]), context.get(["groups", name, "history"])]);
    group = found;
    if (!partitions.node.isConnected) {
      const act = [
        group.may.read ? button("Reset offsets", () => reset(name, group).then((done) => done && again())) : null,
        group.may.delete ? button("Delete", () => remove(name), { kind: "danger" }) : null,
      ];
      fill(
        context.main,
        h("p", { class: "crumbs" }, link(["groups"], "Groups"), " /"),
        h("div", { class: "row" }, h("h1", { class: "words" }, name), h("span", { class: "space" }), act),
        trouble, head,
        h("h2", {}, "Lag over time"), since, h("div", { class: "charts one" }, chart.node),
        h("h2", {}, "Members"), members.node,
        h("h2", {}, "Partitions"), partitions.node,
      );
    }
    fill(head, summary(group));
    fill(since, `Since ${time(history.since_ms)}, when this console started.`);
    const topics = Object.keys(history.series);
    chart.set(history.times, topics.map((topic) => history.series[topic]), topics);
    members.set(group.members);
    partitions.set(group.partitions);
  }, trouble);
}

function summary(group) {
  const lags = group.partitions.map((row) => row.lag ?? 0);
  const oldest = Math.max(0, ...group.partitions.map((row) => row.lag_s ?? 0));
  return facts([
    ["State", mark(group.state, group.state === "Stable" ? "ok" : "")],
    ["Protocol", text([group.type, group.protocol].filter(Boolean).join(", "))],
    ["Epoch", group.assignment_epoch === null || group.assignment_epoch === group.generation
      ? count(group.generation) : `${count(group.generation)}, assigned for ${count(group.assignment_epoch)}`],
    ["Members", count(group.members.length)],
    ["Lag", many(lags.reduce((all, one) => all + one, 0), "record")],
    ["Oldest record that is not committed", seconds(oldest)],
  ]);
}

function lines(assignments) {
  return assignments.map((one) => h("div", { class: "words" }, `${one.topic}: ${one.partitions.join(", ")}`));
}

function memberTable(name) {
  return new Table({
    caption: `Members of ${name}`,
    key: (row) => row.id,
    empty: "No member is in the group now.",
    columns: [
      { name: "client", label: "Client", sort: (row) => row.client_id, cell: (row) => h("span", { class: "words" }, text(row.client_id)) },
      { name: "host", label: "Host", cell: (row) => h("span", { class: "words" }, text(row.host)) },
      { name: "id", label: "Member", narrow: false, cell: (row) => h("code", { class: "words" }, row.id) },
      { name: "assignments", label: "Partitions", cell: (row) => [...lines(row.assignments), ...(row.target === null ? [] : [h("div", { class: "muted" }, "is to read"), ...lines(row.target)])] },
    ],
  });
}

function partitionTable(name) {
  return new Table({
    caption: `Partitions that ${name} reads`,
    key: (row) => `${row.topic}/${row.partition}`,
    sort: "lag",
    descending: true,
    empty: "The group has committed no offsets.",
    columns: [
      { name: "topic", label: "Topic", sort: (row) => row.topic, class: "name", cell: (row) => link(["topics", row.topic, "records"], row.topic) },
      { name: "partition", label: "Partition", number: true, sort: (row) => row.partition, cell: (row) => count(row.partition) },
      { name: "committed", label: "Committed", number: true, sort: (row) => row.committed, narrow: false, cell: (row) => count(row.committed) },
      { name: "end", label: "End", number: true, sort: (row) => row.end, narrow: false, cell: (row) => count(row.end) },
      { name: "lag", label: "Lag", number: true, sort: (row) => row.lag, cell: (row) => count(row.lag) },
      { name: "lag_s", label: "Lag in time", number: true, sort: (row) => row.lag_s, cell: (row) => seconds(row.lag_s) },
      { name: "member", label: "Member", narrow: false, cell: (row) => h("span", { class: "words" }, text(row.member)) },
    ],
  });
}

async function remove(name) {
  const done = await confirmByName("group", name, "Its committed offsets are deleted: its consumers then begin where auto.offset.reset says.", async (typed) => {
    await write("DELETE", ["groups", name], { confirm: typed });
    toast(`Group ${name} deleted`);
    return true;
  });
  if (done) location.hash = "#/groups";
}

/** Ask where the group is to read from, show what that would do, then do it. Resolves to true where it was done. */
async function reset(name, group) {
  const topics = [...new Set(group.partitions.map((row) => row.topic))].sort();
  const topic = select([["", "every topic"], ...topics], "");
  const partitions = h("input", { type: "text", placeholder: "all", pattern: "[0-9, ]*" });
  const to = select(GOALS, "earliest", { autofocus: true });
  const value = h("input", { type: "number", value: "0" });
  const at = h("input", { type: "datetime-local", step: "1", value: time(Date.now() - 3_600_000).replace(" ", "T") });
  const [valueField, timeField, plan] = [field("Offset or number of records", value), field("Time", at), h("div", { "aria-live": "polite" })];
  const asked = (dry_run) => ({
    topic: topic.value || null,
    partitions: partitions.value.trim() ? partitions.value.split(",").map(Number) : null,
    to: to.value,
    value: to.value === "time" ? new Date(at.value).getTime() : to.value === "offset" || to.value === "shift" ? Number(value.value) : null,
    dry_run,
  });
  let previewed = null;
  const preview = async () => {
    const wanted = JSON.stringify(asked(false));
    const { offsets } = await write("POST", ["groups", name, "reset"], asked(true));
    fill(plan, planned(offsets));
    previewed = wanted;
  };
  const choose = () => {
    valueField.hidden = to.value !== "offset" && to.value !== "shift";
    timeField.hidden = to.value !== "time";
    previewed = null;
    fill(plan);
  };
  for (const control of [topic, partitions, to, value, at]) control.addEventListener("input", choose);
  choose();
  return await form(
    "Reset offsets",
    [
      h("p", {}, "The group's members must be stopped first. Records before the new offset are not read again, those after it are."),
      h("div", { class: "row top" }, field("Topic", topic), field("Partitions", partitions, { hint: "Numbers with commas." }), field("To", to), valueField, timeField),
      plan,
    ],
    "Reset",
    async () => {
      if (previewed !== JSON.stringify(asked(false))) throw new Error("Press Preview first, and look at what would change.");
      await write("POST", ["groups", name, "reset"], asked(false));
      toast(`Offsets of ${name} reset`);
      return true;
    },
    { wide: true, extra: { Preview: preview } },
  );
}

function planned(offsets) {
  const table = new Table({
    caption: "What the reset would do",
    key: (row) => `${row.topic}/${row.partition}`,
    columns: [
      { name: "topic", label: "Topic", sort: (row) => row.topic, cell: (row) => h("span", { class: "words" }, row.topic) },
      { name: "partition", label: "Partition", number: true, sort: (row) => row.partition, cell: (row) => count(row.partition) },
      { name: "from", label: "From", number: true, cell: (row) => count(row.from) },
      { name: "to", label: "To", number: true, cell: (row) => count(row.to) },
      { name: "moves", label: "Moves by", number: true, sort: (row) => (row.to ?? 0) - (row.from ?? 0), cell: (row) => (row.from === null ? text(null) : count(row.to - row.from)) },
    ],
  });
  table.set(offsets);
  return table.node;
}
