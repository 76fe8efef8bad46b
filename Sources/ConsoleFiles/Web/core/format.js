/** Values for people to read. */

const number = new Intl.NumberFormat("en");
/**
 * Integers come as text where they may be too large for JavaScript's numbers.
 * @param {number | string | bigint} value
 */
export const count = (value) => number.format(typeof value === "string" ? BigInt(value) : value);

/** What the server says for "no limit": the largest integer. @param {number} value */
export const isUnlimited = (value) => value >= 2 ** 62;

const units = ["bytes", "KB", "MB", "GB", "TB", "PB"];
/** @param {number} value */
export function bytes(value) {
  if (isUnlimited(value)) return "unlimited";
  let [size, unit] = [value, 0];
  while (size >= 1000 && unit < units.length - 1) [size, unit] = [size / 1000, unit + 1];
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1).replace(/\.0$/, "")} ${units[unit]}`;
}

/** @param {number} used @param {number} limit */
export function share(used, limit) {
  if (isUnlimited(limit) || limit === 0) return "";
  const percent = (used / limit) * 100;
  return percent > 0 && percent < 0.1 ? "< 0.1 %" : `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

/** @param {number} value @param {string} [noun] such as "record", for "1 record" and "2 records" */
export const plural = (value, noun = "") => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

/** How long something took. @param {number | undefined} value */
export const milliseconds = (value) =>
  value === undefined ? "–" : value < 100 ? `${value.toFixed(1).replace(/\.0$/, "")} ms` : value < 10000 ? `${count(Math.round(value))} ms` : `${(value / 1000).toFixed(1)} s`;

/** How many in a second, on average. @param {number} value */
export const rate = (value) => (value < 10 && value % 1 ? value.toFixed(value < 1 ? 2 : 1) : count(Math.round(value)));

const dateTime = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** @param {number | string} milliseconds */
export const time = (milliseconds) => {
  const date = new Date(Number(milliseconds));
  return Number.isNaN(date.getTime()) ? String(milliseconds) : dateTime.format(date);
};

/** @param {number} milliseconds @param {number} [now] */
export function ago(milliseconds, now = Date.now()) {
  const seconds = Math.round((milliseconds - now) / 1000);
  for (const [unit, length] of /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([
    ["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60],
  ])) {
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
  }
  return Math.abs(seconds) < 10 ? "just now" : relative.format(seconds, "second");
}

/** The date for an input of the type datetime-local, in the browser's time zone. @param {number} milliseconds */
export function localInput(milliseconds) {
  const date = new Date(milliseconds - new Date(milliseconds).getTimezoneOffset() * 60000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().slice(0, 23);
}

/** @param {string} text @param {number} [length] */
export const cut = (text, length = 120) => (text.length > length ? `${text.slice(0, length)}…` : text);

/** A word for a POSIX shell. @param {string} text */
export const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
