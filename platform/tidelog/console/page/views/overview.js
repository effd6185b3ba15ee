// What the lake does now, and since the console started.

import { BINARY_STEPS, Chart } from "../base/chart.js";
import { fill, h, link, mark } from "../base/dom.js";
import { byteRate, bytes, count, many, rate, shortCount, time } from "../base/format.js";

const CHARTS = [
  ["records_in", "Records in", rate], ["bytes_in", "Bytes in", byteRate, BINARY_STEPS], ["records_out", "Records out (commits of groups)", rate],
  ["lag", "Lag of all groups", shortCount], ["entries", "Entries", shortCount], ["files", "Files", shortCount], ["small_files", "Small files", shortCount],
  ["bytes", "Size", bytes, BINARY_STEPS], ["alarms", "Alarms", shortCount],
];

// The history is much larger than what is true now.
const HISTORY_EVERY_MS = 10_000;

export async function show(context) {
  const [trouble, since] = [h("div", {}), h("p", { class: "muted" })];
  const reading = h("p", { class: "muted", role: "status" });
  const [tiles, alarms] = [h("div", { class: "tiles" }), h("div", {})];
  const charts = CHARTS.map(([name, title, format, steps]) => [name, new Chart(title, format, { steps })]);
  context.onLeave(() => charts.forEach(([, chart]) => chart.stop()));
  let [history, asked] = [null, 0];
  await context.every(async () => {
    const due = Date.now() - asked >= HISTORY_EVERY_MS;
    const [now, newer] = await Promise.all([context.get(["overview"]), due ? context.get(["overview", "history"]) : history]);
    if (due) [history, asked] = [newer, Date.now()];
    if (!tiles.isConnected) {
      const plots = h("div", { class: "charts" }, charts.map(([, chart]) => chart.node));
      fill(context.main, h("h1", {}, "Overview"), trouble, reading, alarms, tiles, h("h2", {}, "History"), since, plots);
    }
    fill(reading, now.unread ? `The console has just started: ${count(now.unread)} of ${many(now.topics, "topic")} are still to be read.` : "");
    fill(tiles, figures(now));
    fill(alarms, troubles(now));
    fill(since, `Since ${time(history.since_ms)}, when this console started; looked at ${time(now.at_ms)}.`);
    if (due) for (const [name, chart] of charts) chart.set(history.times, [history.series[name] ?? history.times.map(() => null)]);
  }, trouble);
}

function figures(now) {
  const shown = [
    ["Topics", count(now.topics), "topics"], ["Partitions", count(now.partitions)], ["Records", shortCount(now.records)], ["Size", bytes(now.bytes)],
    ["Records in", rate(now.in_per_s)], ["Bytes in", byteRate(now.in_bytes_per_s)], ["Records out", rate(now.out_per_s)],
    ["Lag", shortCount(now.lag), "groups"], ["Groups", count(now.groups), "groups"], ["Files", count(now.files)],
    ["Small files", count(now.small_files), "maintenance"], ["Entries", shortCount(now.entries)],
  ];
  return shown.map(([label, value, page]) => h("div", { class: "tile" }, h("span", {}, page ? link([page], label) : label), h("strong", {}, value)));
}

function troubles(now) {
  const rows = [
    ...now.alarms.map((alarm) => h("li", {}, mark(alarm.level, alarm.level), " ", h("strong", {}, alarm.name), " ", alarm.what, " ", alarm.do)),
    ...now.broken.map((one) => h("li", {}, mark("error", "error"), " ", h("strong", { class: "words" }, one.topic), " cannot be read: ", one.why)),
  ];
  return rows.length ? h("section", { class: "box", "aria-label": "Alarms" }, h("ul", { class: "plain" }, rows)) : null;
}

