// Dialogs (the browser's own: they hold the focus, and Escape closes them), messages, and the clipboard.

import { button, field, fill, fresh, h } from "./dom.js";

/** A short message at the edge of the page. `level`: "ok" or "error". */
export function toast(message, level = "ok") {
  const shown = h("div", { class: `toast ${level}` }, message);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), level === "error" ? 12_000 : 4000);
}

/** A box with what went wrong, and a way to try again. */
export function failure(error, again = null) {
  return h(
    "div",
    { class: "box error", role: "alert" },
    h("strong", {}, error.status === 403 ? "Not allowed" : error.status === 404 ? "Not found" : "That did not work"),
    h("p", { class: "words" }, error.message),
    again ? button("Try again", again) : null,
  );
}

/** Open a dialog; it resolves when the dialog closes. `content(close)` gives its nodes. */
export function dialog(title, content, { wide = false } = {}) {
  const id = fresh("title");
  const box = h("dialog", { class: wide ? "wide" : "", "aria-labelledby": id });
  return new Promise((resolve) => {
    let result = null;
    const close = (value = null) => {
      result = value;
      box.close();
    };
    fill(
      box,
      h("div", { class: "head" }, h("h2", { id }, title), button("Close", () => close(), { kind: "quiet", "aria-label": "Close the dialog" })),
      content(close),
    );
    box.addEventListener("close", () => {
      box.remove();
      resolve(result);
    });
    document.body.append(box);
    box.showModal();
  });
}

/**
 * A form in a dialog. `act()` does the work; while it raises, the dialog stays and says why. `extra`: other work, as
 * {label: act}; it closes the dialog where it gives something. Resolves to what was given, null where it was closed.
 */
export function form(title, fields, label, act, { kind = "primary", wide = false, extra = {} } = {}) {
  return dialog(
    title,
    (close) => {
      const wrong = h("div", { class: "wrong", role: "alert" });
      const go = h("button", { class: kind, type: "submit" }, label);
      const run = async (work, control) => {
        control.disabled = true;
        fill(wrong);
        try {
          const given = await work();
          if (given !== null && given !== undefined) close(given);
        } catch (error) {
          fill(wrong, error.message);
        } finally {
          control.disabled = false;
        }
      };
      const submit = (event) => {
        event.preventDefault();
        run(act, go);
      };
      const others = Object.entries(extra).map(([name, work]) => button(name, (event) => run(work, event.currentTarget)));
      return h("form", { on: { submit } }, fields, wrong, h("div", { class: "row end" }, others, button("Cancel", () => close()), go));
    },
    { wide },
  );
}

/** Ask for the name of what is to go, typed out; then `act(name)`. */
export function confirmByName(what, name, words, act) {
  const typed = h("input", { type: "text", autocomplete: "off", spellcheck: "false", autofocus: true });
  const about = h("p", {}, `${words} Type its name to confirm: `, h("code", { class: "words" }, name));
  return form(
    `Delete ${what}`,
    [about, field("Name", typed, { wide: true })],
    "Delete",
    async () => {
      if (typed.value !== name) throw new Error(`That is not the name. It is ${name}, letter by letter.`);
      return await act(typed.value);
    },
    { kind: "danger" },
  );
}

/** Copy text; where the browser has no clipboard for this page (plain HTTP from elsewhere), select it in a dialog. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    const area = h("textarea", { rows: "8", readonly: true, "aria-label": what });
    area.value = text;
    await dialog(`Copy ${what}`, () => {
      queueMicrotask(() => area.select());
      return [h("p", {}, "The browser gives this page no clipboard: press Ctrl+C."), area];
    });
  }
}
