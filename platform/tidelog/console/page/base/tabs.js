// Tabs as links: each has an address of its own, and the arrow keys go from one to the next.

import { h, to } from "./dom.js";

/** `tabs`: [name, label]; `parts`: the path before the name. The one that is shown has aria-current. */
export function tabs(label, parts, all, current) {
  const links = all.map(([name, words]) => h("a", { href: to([...parts, name]), "aria-current": name === current ? "page" : null }, words));
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const here = links.indexOf(event.target);
    if (!step || here < 0) return;
    event.preventDefault();
    links[(here + step + links.length) % links.length].focus();
  };
  return h("nav", { class: "tabs", "aria-label": label, on: { keydown: move } }, links);
}
