// Numbers, sizes, times and names as people read them.

const COUNT = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const NONE = "–";

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

/** 1,234,567 */
export function count(value) {
  return known(value) ? COUNT.format(value) : NONE;
}

/** 1.2M */
export function shortCount(value) {
  return known(value) ? SHORT.format(value) : NONE;
}

/** 1.5 MiB */
export function bytes(value) {
  if (!known(value)) return NONE;
  let [size, unit] = [value, 0];
  while (Math.abs(size) >= 1024 && unit < SIZES.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${SIZES[unit]}`;
}

/** 12.5/s */
export function rate(value) {
  if (!known(value)) return NONE;
  return `${value >= 100 || value === 0 ? COUNT.format(Math.round(value)) : value.toFixed(value < 1 ? 2 : 1)}/s`;
}

/** 1.5 MiB/s */
export function byteRate(value) {
  return known(value) ? `${bytes(value)}/s` : NONE;
}

/** 3 min, 2.5 h, 7 d, 1.5 y; -1 is for ever, as in Kafka's retention.ms. */
export function duration(ms) {
  if (!known(ms)) return NONE;
  if (ms < 0) return "for ever";
  for (const [unit, size] of [["y", 31_557_600_000], ["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]]) {
    if (ms >= size) return `${Number((ms / size).toFixed(ms / size < 10 ? 1 : 0))} ${unit}`;
  }
  return `${Math.round(ms)} ms`;
}

export function seconds(value) {
  return known(value) ? duration(value * 1000) : NONE;
}

const two = (value) => String(value).padStart(2, "0");

/** 2026-11-23 11:13:27, in the browser's time zone. */
export function time(ms, { millis = false } = {}) {
  if (!known(ms) || ms < 0) return NONE;
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return `${ms} ms`;
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${day} ${clock}${millis ? `.${String(at.getMilliseconds()).padStart(3, "0")}` : ""}`;
}

/** 3 min ago */
export function ago(ms, now = Date.now()) {
  return known(ms) && ms > 0 ? `${duration(Math.max(0, now - ms))} ago` : NONE;
}

/** One of several: 1 topic, 2 topics. */
export function many(number, one, several = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : several}`;
}

/** What is shown where nothing is known. */
export function text(value) {
  if (value === null || value === undefined || value === "") return NONE;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
