/**
 * Editors for the values of records, one for each field type. A value has the form of requests; `null` is "not set".
 */
import { signal } from "../core/signal.js";
import { each, html } from "../core/dom.js";
import { bytes, localInput } from "../core/format.js";
import { parseType } from "../core/schema.js";
import { address, place } from "../core/router.js";
import { button, link, select } from "./parts.js";
import { assetEditor } from "./asset.js";
import { findRecord } from "./findrecord.js";

const { div, input, span, textarea } = html;

/**
 * @typedef {{type: string, value: any, onchange: (value: any, problem?: string | null) => void, isReadOnly: boolean,
 *     label: string, id: string, context: {recordType: string, fieldName: string, recordName: string | null}}}
 *   EditorOptions
 */

/** @param {EditorOptions} options @returns {any} */
export function valueEditor(options) {
  const { base, isList, isEncrypted } = parseType(options.type);
  if (isList) return listEditor(options, base);
  if (isEncrypted) return maskedEditor(options, base);
  return memberEditor(options, base);
}

/** @param {EditorOptions} options @param {string} base */
function memberEditor(options, base) {
  switch (base) {
    case "STRING": return stringEditor(options);
    case "INT64": return numberEditor(options, integerProblem, "numeric");
    case "DOUBLE":
    case "NUMBER": return numberEditor(options, doubleProblem, "decimal");
    case "TIMESTAMP": return dateEditor(options);
    case "LOCATION": return locationEditor(options);
    case "REFERENCE": return referenceEditor(options);
    case "BYTES": return bytesEditor(options);
    case "ASSET": return assetEditor(options);
    default: return span({ class: "muted" }, JSON.stringify(options.value));
  }
}

/** @param {EditorOptions} options */
const stringEditor = ({ value, onchange, isReadOnly, id, label }) =>
  textarea({
    id, rows: "1", class: "grows", "aria-label": label, readOnly: isReadOnly, value: value ?? "",
    placeholder: value === "" ? "empty text" : "not set", spellcheck: "false",
    oninput: (event) => onchange(event.target.value),
  });

/** @param {string} text */
export function integerProblem(text) {
  if (!/^[+-]?\d+$/.test(text)) return "A whole number is needed.";
  const value = BigInt(text);
  return value >= -(2n ** 63n) && value < 2n ** 63n ? null : "This is beyond 64 bits.";
}

/** @param {string} text */
export const doubleProblem = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) ? null : "A number is needed, such as -1.5 or 2e8.");

/** @param {EditorOptions} options @param {(text: string) => string | null} problem @param {string} mode */
const numberEditor = ({ value, onchange, isReadOnly, id, label }, problem, mode) =>
  input({
    id, "aria-label": label, inputmode: mode, class: "number", readOnly: isReadOnly, placeholder: "not set", autocomplete: "off",
    value: value === null || value === undefined ? "" : String(value),
    oninput: ({ target }) => {
      const text = target.value.trim();
      const found = text === "" ? null : problem(text);
      target.toggleAttribute("aria-invalid", found !== null);
      onchange(text === "" ? null : text.replace(/^\+/, ""), found);
    },
  });

/** @param {EditorOptions} options */
function dateEditor({ value, onchange, isReadOnly, id, label }) {
  const now = signal(value === null || value === undefined ? null : Number(value));
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return div({ class: "stack" },
    input({
      id, "aria-label": label, type: "datetime-local", step: "0.001", readOnly: isReadOnly,
      value: now.peek() === null ? "" : localInput((now.peek())),
      oninput: ({ target }) => {
        const time = target.value === "" ? NaN : new Date(target.value).getTime();
        now.value = Number.isNaN(time) ? null : time;
        onchange(Number.isNaN(time) ? null : String(time), target.validity.badInput ? "This date is not complete." : null);
      },
    }),
    span({ class: "hint" }, () => (now.value === null ? `in ${zone}` : `${zone}; ${utc(now.value)}`)));
}

/** @param {number} time */
function utc(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time) : `${date.toISOString().replace("T", " ").replace("Z", "")} UTC`;
}

const locationMembers = /** @type {const} */ ([
  ["altitude", "Altitude (m)"], ["horizontalAccuracy", "Accuracy (m)"], ["verticalAccuracy", "Vertical accuracy (m)"],
  ["speed", "Speed (m/s)"], ["course", "Course (°)"],
]);

/** @param {EditorOptions} options */
function locationEditor({ value, onchange, isReadOnly, id, label }) {
  /** @type {Record<string, string>} */
  const texts = Object.fromEntries(Object.entries(value ?? {}).map(([name, one]) => [name, String(one)]));
  const isWhole = signal(locationMembers.some(([name]) => texts[name] !== undefined));
  const change = () => {
    const set = Object.entries(texts).filter(([, text]) => text !== undefined && text.trim() !== "");
    if (set.length === 0) return onchange(null);
    const [latitude, longitude] = [Number(texts.latitude || NaN), Number(texts.longitude || NaN)];
    const problem = !(Math.abs(latitude) <= 90) ? "The latitude is from -90 to 90." : !(Math.abs(longitude) <= 180) ? "The longitude is from -180 to 180." : set.some(([, text]) => !Number.isFinite(Number(text))) ? "All of these are numbers." : null;
    onchange(Object.fromEntries(set.map(([name, text]) => [name, Number(text)])), problem);
  };
  const part = (name, words, /** @type {string | null} */ partID) =>
    html.label({ class: "part" }, span(words),
      input({ id: partID, "aria-label": `${label}, ${words}`, inputmode: "decimal", class: "number", readOnly: isReadOnly, value: texts[name] ?? "", placeholder: "not set",
        oninput: (event) => { texts[name] = event.target.value; change(); } }));
  return div({ class: "stack" },
    div({ class: "parts" }, part("latitude", "Latitude", id), part("longitude", "Longitude", null)),
    () => isWhole.value
      ? div({ class: "parts" }, locationMembers.map(([name, words]) => part(name, words, null)))
      : button({ label: "Altitude, accuracy, speed…", kind: "plain", onclick: () => (isWhole.value = true) }));
}

/** @param {EditorOptions} options */
function referenceEditor({ value, onchange, isReadOnly, id, label }) {
  const name = signal(value?.recordName ?? "");
  let action = value?.action ?? "NONE";
  const change = () => onchange(name.peek() === "" ? null : { recordName: name.peek(), action });
  return div({ class: "stack" },
    div({ class: "joined" },
      input({ id, "aria-label": label, class: "mono", value: () => name.value, readOnly: isReadOnly, placeholder: "not set", autocomplete: "off", spellcheck: "false",
        oninput: (event) => { name.value = event.target.value; change(); } }),
      isReadOnly ? null : button({ label: `Find a record for ${label}`, icon: "search", hides: true, onclick: async () => {
        const found = await findRecord();
        if (!found) return;
        name.value = found;
        change();
      } })),
    div({ class: "row" },
      select({ "aria-label": `${label}, when the record it names is deleted`, value: action, disabled: isReadOnly,
        options: [{ value: "NONE", label: "on deletion: nothing" }, { value: "DELETE_SELF", label: "on deletion: delete this too" }, { value: "VALIDATE", label: "must exist" }],
        onchange: (next) => { action = next; change(); } }),
      () => name.value ? link(address({ screen: "records", params: { ...place.value.params, new: "", record: name.value } }), "Open") : null));
}

/** @param {EditorOptions} options */
function bytesEditor({ value, onchange, isReadOnly, id, label }) {
  const text = signal(value ?? "");
  const size = () => (text.value ? bytes(Math.floor((text.value.replace(/[\s=]/g, "").length * 3) / 4)) : "not set");
  const take = (next) => {
    text.value = next;
    let problem = null;
    try {
      atob(next);
    } catch {
      problem = "This is not Base64.";
    }
    onchange(next === "" ? null : next, problem);
  };
  return div({ class: "stack" },
    textarea({ id, "aria-label": `${label}, Base64`, class: "mono grows", rows: "1", readOnly: isReadOnly, value: () => text.value, placeholder: "not set", spellcheck: "false",
      oninput: (event) => take(event.target.value.trim()) }),
    div({ class: "row" }, span({ class: "hint" }, "Base64, ", size),
      isReadOnly ? null : html.label({ class: "link" }, "From a file…", input({ type: "file", class: "hidden-text", onchange: async ({ target }) => {
        if (target.files[0]) take(base64(new Uint8Array(await target.files[0].arrayBuffer())));
      } }))));
}

/** @param {Uint8Array} data */
function base64(data) {
  let text = "";
  for (let at = 0; at < data.length; at += 8192) text += String.fromCharCode(...data.subarray(at, at + 8192));
  return btoa(text);
}

/** An encrypted value is hidden until it is asked for. @param {EditorOptions} options @param {string} base */
function maskedEditor(options, base) {
  const isShown = signal(options.value === null || options.value === undefined);
  return () => isShown.value
    ? memberEditor(options, base)
    : div({ class: "joined" }, input({ id: options.id, "aria-label": options.label, value: "••••••••", readOnly: true }),
      button({ label: "Show", onclick: () => (isShown.value = true) }));
}

/** @param {EditorOptions} options @param {string} base */
function listEditor(options, base) {
  let nextKey = 0;
  const wrap = (value) => ({ key: (nextKey += 1), value, problem: (null) });
  const members = signal((options.value ?? []).map(wrap));
  const isSet = signal(Array.isArray(options.value));
  const change = () => {
    const list = members.peek();
    const problem = list.find((member) => member.problem)?.problem ?? (list.some((member) => member.value === null) ? "A member of a list cannot be empty." : null);
    options.onchange(isSet.peek() ? list.map((member) => member.value) : null, problem);
  };
  const put = (next) => { isSet.value = true; members.value = next; change(); };
  const move = (key, by) => {
    const list = [...members.peek()];
    const at = list.findIndex((member) => member.key === key);
    const [one] = list.splice(at, 1);
    list.splice(Math.max(0, at + by), 0, one);
    put(list);
  };
  return div({ class: "list-editor", role: "group", "aria-label": options.label },
    each(() => members.value, (member) => member.key, (member) => {
      const { key, value } = member.peek();
      const place = () => members.value.findIndex((one) => one.key === key) + 1;
      return div({ class: "list-member" },
        span({ class: "list-place", "aria-hidden": "true" }, place),
        div({ class: "list-value" }, memberEditor({ ...options, id: `${options.id}-${key}`, label: `${options.label}, member`, value,
          onchange: (next, problem) => { Object.assign(member.peek(), { value: next, problem: problem ?? null }); change(); } }, base)),
        options.isReadOnly ? null : div({ class: "list-tools" },
          button({ label: "Move up", icon: "deploy", kind: "plain", hides: true, onclick: () => move(key, -1) }),
          button({ label: "Remove", icon: "close", kind: "plain", hides: true, onclick: () => put(members.peek().filter((one) => one.key !== key)) })));
    }),
    () => isSet.value && members.value.length === 0 ? span({ class: "hint" }, "An empty list") : null,
    options.isReadOnly ? null : button({ label: "Add", "aria-label": `Add to ${options.label}`, icon: "add", kind: "plain", id: options.id, onclick: () => put([...members.peek(), wrap(base === "STRING" ? "" : null)]) }));
}

/**
 * An editor for the value of a filter, or for several of them.
 * @param {{type: string, comparator: string, value: string, onchange: (value: string) => void, label: string}}
 *   options
 */
export function filterEditor({ type, comparator, value, onchange, label }) {
  const { base } = parseType(type);
  const isMany = comparator === "IN" || comparator === "NOT_IN";
  if (base === "TIMESTAMP" && !isMany) {
    return input({ type: "datetime-local", step: "0.001", "aria-label": label, value: value ? localInput(Number(value)) : "",
      onchange: ({ target }) => onchange(target.value ? String(new Date(target.value).getTime()) : "") });
  }
  const placeholder = base === "LOCATION" ? "48.86, 2.35, 500 km" : isMany ? "one, two, three" : base === "REFERENCE" ? "record name" : base === "INT64" || base === "DOUBLE" ? "number" : "value";
  return input({ "aria-label": label, value, placeholder, autocomplete: "off", spellcheck: "false", onchange: (event) => onchange(event.target.value) });
}

/** The value of a filter as a request has it. @param {string} type @param {string} comparator @param {string} text */
export function filterValue(type, comparator, text) {
  const { base } = parseType(type);
  if (base === "LOCATION") {
    const [latitude, longitude, distance] = text.split(",").map((part) => part.trim());
    const metres = /^([\d.]+)\s*(km|m)?$/.exec(distance ?? "");
    return { fieldValue: { value: { latitude: Number(latitude), longitude: Number(longitude) }, type: "LOCATION" },
      distance: metres ? Number(metres[1]) * (metres[2] === "km" ? 1000 : 1) : null };
  }
  const one = (part) => (base === "REFERENCE" ? { recordName: part, action: "NONE" } : part);
  const kind = base === "NUMBER" ? "DOUBLE" : base;
  if (comparator === "IN" || comparator === "NOT_IN") return { fieldValue: { value: text.split(",").map((part) => one(part.trim())), type: `${kind}_LIST` } };
  return { fieldValue: { value: one(text), type: kind } };
}
