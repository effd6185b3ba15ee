// The console: its frame, its pages by address, and what each page may use.

import { get, openSession } from "./base/api.js";
import { failure } from "./base/dialogs.js";
import { fill, h, mark } from "./base/dom.js";
import { help, listen } from "./base/keys.js";

const PAGES = [
  ["overview", "Overview"], ["topics", "Topics"], ["groups", "Groups"], ["sql", "SQL"],
  ["transactions", "Transactions"], ["producers", "Producers"], ["maintenance", "Maintenance"], ["check", "Check"],
  ["doctor", "Doctor"], ["brokers", "Brokers"], ["schemas", "Schemas"], ["connectors", "Connectors"], ["mirrors", "Mirrors"],
  ["cuts", "Cuts"],
];
const THEMES = ["system", "light", "dark"];
const main = document.getElementById("main");
const menu = document.getElementById("menu");
const pages = document.getElementById("pages");

let session = null;
let shown = null;

/** What a page is given: its place, its address, the session, and what ends with it. */
class Context {
  constructor(route) {
    this.route = route;
    this.session = session;
    this.main = main;
    this.gone = new AbortController();
    this.signal = this.gone.signal;
    this.stops = [];
  }

  /** Call `stop` when the page is left. */
  onLeave(stop) {
    this.stops.push(stop);
  }

  get(parts, query = {}) {
    return get(parts, query, this.signal);
  }

  /**
   * Call `load` now and then again every `ms` (as the server asks, where none are given) while the page is shown and
   * the browser shows it. What fails is shown in `place`, and tried again; the first load's failure takes the page.
   */
  async every(load, place = null, ms = session.ask_every_ms ?? 5000) {
    const trouble = place ?? h("div", {});
    let timer = 0;
    const again = async () => {
      clearTimeout(timer);
      if (this.signal.aborted) return;
      if (!document.hidden) {
        try {
          await load();
          fill(trouble);
        } catch (error) {
          if (error.name === "AbortError") return;
          fill(trouble, failure(error));
          if (!trouble.isConnected) main.prepend(trouble);
        }
      }
      if (!this.signal.aborted) timer = setTimeout(again, ms);
    };
    const wake = () => {
      if (!document.hidden) again();
    };
    document.addEventListener("visibilitychange", wake);
    this.onLeave(() => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", wake);
    });
    await load();
    if (!this.signal.aborted) timer = setTimeout(again, ms);
    return again;
  }

  leave() {
    this.gone.abort();
    for (const stop of this.stops) stop();
  }
}

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts: parts.length ? parts : ["overview"], query: new URLSearchParams(query) };
}

async function show() {
  if (location.hash === "#main") return;
  const wanted = route();
  const [name] = wanted.parts;
  shown?.leave();
  for (const open of document.querySelectorAll("dialog[open]")) open.close(); // it was about the page that is left
  const context = new Context(wanted);
  shown = context;
  openMenu(false);
  for (const one of pages.querySelectorAll("a")) {
    if (one.dataset.page === name) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  const title = PAGES.find(([page]) => page === name)?.[1];
  document.title = `${[...wanted.parts.slice(1, 2), title ?? "Nothing"].join(" · ")} · tidelog`;
  if (!title) {
    fill(main, h("h1", {}, "Nothing is here"), h("p", {}, "This address leads to no page of the console."));
    main.setAttribute("aria-busy", "false");
    return;
  }
  main.setAttribute("aria-busy", "true");
  try {
    const view = await import(`./views/${name}.js`);
    if (!context.signal.aborted) await view.show(context);
  } catch (error) {
    if (error.name !== "AbortError" && !context.signal.aborted) fill(main, h("h1", {}, title), failure(error, show));
  } finally {
    if (shown === context) main.setAttribute("aria-busy", "false");
  }
}

function openMenu(open) {
  menu.setAttribute("aria-expanded", String(open));
  pages.classList.toggle("open", open);
}

function showTheme(chosen) {
  const wanted = THEMES.includes(chosen) ? chosen : "system";
  if (wanted === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = wanted;
  document.getElementById("theme").textContent = `Theme: ${wanted}`;
  document.dispatchEvent(new Event("tidelog:theme"));
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % THEMES.length];
  try {
    localStorage.setItem("tidelog.theme", next);
  } catch {
    // The choice then holds until the page is loaded again.
  }
  showTheme(next);
}

async function start() {
  fill(pages, PAGES.map(([name, label]) => h("a", { href: `#/${name}`, data: { page: name } }, label)));
  menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"));
  document.getElementById("keys").addEventListener("click", help);
  document.getElementById("theme").addEventListener("click", nextTheme);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("tidelog:theme")));
  showTheme(document.documentElement.dataset.theme ?? "system");
  listen();
  try {
    session = await openSession();
  } catch (error) {
    const title = error.status === 401 ? "Log in" : "The console does not answer";
    fill(main, h("h1", {}, title), failure(error, () => location.reload()));
    return;
  }
  const lake = document.getElementById("lake");
  lake.textContent = session.lake;
  lake.title = `${session.lake}, cluster ${session.cluster_id}, tidelog ${session.version}`;
  fill(document.getElementById("marks"), session.read_only ? mark("read-only", "warning") : null, session.user && session.user !== "User:ANONYMOUS" ? mark(session.user) : null);
  addEventListener("hashchange", show);
  await show();
}

start();
