// Subjects of the schema registry, and one subject's versions.

import { fill, h, link, mark } from "../base/dom.js";
import { count, text, time } from "../base/format.js";
import { listing, notThere } from "../base/listing.js";

export async function show(context) {
  if (context.route.parts.length > 1) {
    await showSubject(context);
    return;
  }
  const table = {
    caption: "Subjects",
    key: (row) => row.subject,
    sort: "subject",
    columns: [
      { name: "subject", label: "Subject", sort: (row) => row.subject, class: "name", cell: (row) => link(["schemas", row.subject], row.subject) },
      { name: "type", label: "Kind", cell: (row) => mark(text(row.type)) },
      { name: "versions", label: "Versions", number: true, sort: (row) => row.versions, narrow: false, cell: (row) => count(row.versions) },
      { name: "version", label: "Newest", number: true, sort: (row) => row.version, cell: (row) => count(row.version) },
      { name: "id", label: "Id", number: true, sort: (row) => row.id, cell: (row) => count(row.id) },
      { name: "at", label: "Registered", narrow: false, sort: (row) => row.at_ms, cell: (row) => time(row.at_ms) },
    ],
  };
  const missing = notThere("No schema is registered in this lake.", `tidelog --lake ${context.session.lake} registry start`, "Serializers then register what they write.");
  await listing(context, "Schemas", table, async () => (await context.get(["schemas"])).subjects, { missing });
}

async function showSubject(context) {
  const name = context.route.parts[1];
  const { versions } = await context.get(["schemas", name]);
  fill(
    context.main,
    h("p", { class: "crumbs" }, link(["schemas"], "Schemas"), " /"),
    h("h1", { class: "words" }, name),
    versions.map((one) => [
      h("h2", {}, `Version ${one.version}`, " ", mark(text(one.type)), " ", h("small", { class: "muted" }, `id ${one.id}`)),
      h("pre", { class: "words", tabindex: "0", role: "region", "aria-label": `Version ${one.version}` }, pretty(one.schema)),
    ]),
  );
}

function pretty(schema) {
  try {
    return JSON.stringify(typeof schema === "string" ? JSON.parse(schema) : schema, null, 2);
  } catch {
    return schema;
  }
}
