// Charts of history, drawn by uPlot in the page's colours.

import { fill, h } from "./dom.js";

/* global uPlot */

const HEIGHT = 150;
const MOST_SERIES = 8;
// Steps of the axis of time, in seconds: its labels have no part of one.
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400, 172_800, 604_800];
export const BINARY_STEPS = Array.from({ length: 60 }, (_, power) => 2 ** power);

/**
 * A chart over time. `format(value)` writes its numbers; `steps`: between those of its axis, uPlot's own unless given;
 * `names` says what the lines are called, in their order.
 */
export class Chart {
  constructor(title, format, { names = [title], steps = null } = {}) {
    Object.assign(this, { title, format, names, steps });
    this.now = h("span", { class: "now" });
    this.place = h("div", { class: "plot", role: "img" });
    this.keys = h("ul", { class: "legend" });
    this.node = h("figure", { class: "chart" }, h("figcaption", {}, h("span", {}, title), this.now), this.place, this.keys);
    this.plot = null;
    this.data = null;
    this.resized = new ResizeObserver(() => this.#fit());
    this.themed = () => this.#draw();
    this.resized.observe(this.place);
    document.addEventListener("tidelog:theme", this.themed);
  }

  /** Show these values: times in ms, and one list for each line, null where nothing is known. */
  set(times, lines, names = this.names) {
    const kept = lines.slice(0, MOST_SERIES);
    const renamed = String(names) !== String(this.names) || kept.length !== this.data?.length - 1;
    this.names = names;
    this.data = [times.map((ms) => ms / 1000), ...kept];
    const last = kept.map((values) => values.findLast((value) => value !== null && value !== undefined));
    const words = last.map((value) => this.format(value));
    fill(this.now, kept.length === 1 ? words[0] : "");
    this.place.setAttribute("aria-label", `${this.title}: ${kept.map((_, index) => `${names[index]} ${words[index]}`).join(", ")}`);
    fill(this.keys, kept.length > 1 ? kept.map((_, index) => h("li", { class: `line-${index}` }, `${names[index]} ${words[index]}`)) : null);
    if (this.plot && !renamed) this.plot.setData(this.data);
    else this.#draw();
  }

  /** Let go of what listens outside of the chart. */
  stop() {
    this.resized.disconnect();
    document.removeEventListener("tidelog:theme", this.themed);
    this.plot?.destroy();
    this.plot = null;
  }

  #fit() {
    const width = Math.floor(this.place.clientWidth);
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
    else if (!this.plot) this.#draw();
  }

  #draw() {
    if (!this.data || !this.place.clientWidth) return;
    this.plot?.destroy();
    fill(this.place);
    const [ink, faint] = [colour(this.place, "ink"), colour(this.place, "faint")];
    const axis = { stroke: ink, font: "11px system-ui, sans-serif", ticks: { show: false } };
    const options = {
      width: Math.floor(this.place.clientWidth),
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high ?? 0) > 0 ? high * 1.1 : 1] } },
      axes: [
        { ...axis, grid: { show: false }, size: 24, space: 70, incrs: TIME_STEPS, values: (_, splits) => splits.map(clock) },
        { ...axis, grid: { stroke: faint, width: 1 }, size: 64, space: 30, ...(this.steps ? { incrs: this.steps } : {}), values: (_, splits) => splits.map((value) => this.format(value)) },
      ],
      series: [
        {},
        ...this.data.slice(1).map((_, index) => {
          const stroke = colour(this.place, `line-${index}`);
          return { stroke, width: 1.5, points: { show: () => this.data[0].length < 3 }, fill: this.data.length === 2 ? `${stroke}22` : undefined };
        }),
      ],
      hooks: { setCursor: [(plot) => this.#point(plot)] },
    };
    this.plot = new uPlot(options, this.data, this.place);
  }

  /** The value below the pointer, beside the title. */
  #point(plot) {
    const at = plot.cursor.idx;
    if (this.data.length !== 2) return;
    const values = this.data[1];
    const shown = at === null || at === undefined ? values.findLast((value) => value !== null) : values[at];
    const when = at === null || at === undefined ? "" : `${clock(this.data[0][at])}  `;
    fill(this.now, `${when}${this.format(shown)}`);
  }
}

function clock(s) {
  const at = new Date(s * 1000);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

/** A colour of the style sheet as #rrggbb, as the theme has it now. */
function colour(place, name) {
  const probe = h("i", { class: `paint ${name}` });
  place.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  const parts = found.match(/[\d.]+/g).slice(0, 3).map(Number);
  return `#${parts.map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;
}
