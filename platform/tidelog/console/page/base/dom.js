// Elements of the page. Text always becomes a text node, never markup; styles are classes, as the policy asks.

/**
 * An element. `properties`: `class`, `on` ({event: listener}), `data` ({name: text}), and attributes; `true` sets an
 * attribute without a value, `null`, `undefined` and `false` leave it out. Children: nodes, text, or lists of these.
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "value") element.value = value;
    else if (name === "style" || name.startsWith("on")) throw new Error(`${name} is no attribute of this page`);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Put children in the place of those that an element has. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

let counted = 0;

/** An id that no other element has. */
export function fresh(name) {
  counted += 1;
  return `${name}-${counted}`;
}

/** A control with its label. `hint` is shown below and read with it. */
export function field(label, control, { hint = "", wide = false } = {}) {
  control.id ||= fresh("field");
  const about = hint ? h("small", { id: fresh("hint"), class: "muted" }, hint) : null;
  if (about) control.setAttribute("aria-describedby", about.id);
  return h("div", { class: wide ? "field wide" : "field" }, h("label", { for: control.id }, label), control, about);
}

/** A list to choose from: `options` are values, or [value, label]. */
export function select(options, chosen, properties = {}) {
  const made = options.map((one) => {
    const [value, label] = Array.isArray(one) ? one : [one, one];
    return h("option", { value: String(value), selected: String(value) === String(chosen) }, label);
  });
  return h("select", properties, made);
}

/** A button. `kind`: "", "primary", "danger" or "quiet". */
export function button(label, act, { kind = "", ...properties } = {}) {
  return h("button", { type: "button", class: kind, on: { click: act }, ...properties }, label);
}

/** A link to a page of the console; each part of its path may hold any character. */
export function link(parts, label, query = {}) {
  return h("a", { href: to(parts, query) }, label);
}

/** The address of a page: #/topics/NAME/records?from=latest. */
export function to(parts, query = {}) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== null)).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${asked ? `?${asked}` : ""}`;
}

/** A coloured mark of one word. `level`: "ok", "warning", "error" or "". */
export function mark(text, level = "") {
  return h("span", { class: `mark ${level}` }, text);
}
