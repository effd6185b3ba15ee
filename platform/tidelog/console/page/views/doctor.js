// One page for three in the morning: what is wrong, and what to do.

import { fill, h, mark } from "../base/dom.js";
import { many, text } from "../base/format.js";

const ORDER = { error: 0, warning: 1, ok: 2 };

export async function show(context) {
  const [trouble, total, list] = [h("div", {}), h("p", { role: "status" }), h("ul", { class: "plain findings" })];
  await context.every(async () => {
    const { findings } = await context.get(["doctor"]);
    if (!list.isConnected) fill(context.main, h("h1", {}, "Doctor"), trouble, total, list);
    const bad = findings.filter((one) => one.level !== "ok").length;
    fill(total, bad ? `${many(bad, "thing")} to look at.` : "All is well: the doctor looked at the store, the clock, the disk, topics, groups, transactions, brokers and upkeep.");
    fill(list, [...findings].sort((a, b) => ORDER[a.level] - ORDER[b.level]).map(finding));
  }, trouble, 30_000);
}

function finding(one) {
  return h(
    "li",
    { class: "box" },
    h("div", { class: "row" }, mark(one.level, one.level), h("strong", { class: "words" }, text(one.what)), one.rule ? h("small", { class: "muted" }, one.rule) : null),
    one.do ? h("p", { class: "words" }, one.do) : null,
  );
}
