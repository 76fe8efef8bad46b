/** Preferences: a user's key-value store, as that user; what their devices change is shown as it happens. */
import { computed, effect, onCleanup, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, newKey } from "../core/api.js";
import { acting } from "../core/acting.js";
import { asRequestError, resource } from "../core/resource.js";
import { place } from "../core/router.js";
import { denial } from "../core/session.js";
import { useKeys } from "../core/keys.js";
import { bytes, count, cut, plural, time } from "../core/format.js";
import { actionsColumn, badge, button, empty, field, meter, screenHead, select, textField, timeAgo, toast, view } from "../elements/parts.js";
import { confirm, openForm } from "../elements/dialog.js";
import { doubleProblem, integerProblem } from "../elements/fields.js";
import { needsActing } from "../elements/actas.js";
import { table } from "../elements/table.js";

const { code, div, input, section, span, strong, textarea } = html;
const [listKeys, setKeys, usageOfKeys, watchKeys] = [
  "POST /kv/1/{container}/{environment}/list", "POST /kv/1/{container}/{environment}/set",
  "POST /kv/1/{container}/{environment}/usage", "POST /kv/1/{container}/{environment}/watch",
];

/** @type {Record<string, string>} */
const typeNames = { STRING: "String", INT64: "Integer", DOUBLE: "Double", BOOL: "Bool", TIMESTAMP: "Date", BYTES: "Data", ARRAY: "Array", DICTIONARY: "Dictionary" };
/** Where a new value begins. @type {Record<string, any>} */
const firstValues = { STRING: "", INT64: 0, DOUBLE: 0, BOOL: false, TIMESTAMP: 0, BYTES: "", ARRAY: [], DICTIONARY: {} };
const encoder = new TextEncoder();

/** Bytes, as the limits count them: each member and key inside a value counts 8 at least. @param {{type: string, value: any}} entry @returns {number} */
function size({ type, value }) {
  switch (type) {
    case "STRING": return encoder.encode(value).length;
    case "BYTES": return Math.floor((value.replaceAll("=", "").length * 3) / 4);
    case "BOOL": return 1;
    case "ARRAY": return value.reduce((sum, each) => sum + memberSize(each), 0);
    case "DICTIONARY": return Object.entries(value).reduce((sum, [key, each]) => sum + Math.max(8, encoder.encode(key).length) + memberSize(each), 0);
    default: return 8;
  }
}

/** @param {{type: string, value: any}} entry @returns {number} */
const memberSize = (entry) => (typeof entry.value === "object" ? 8 + size(entry) : Math.max(8, size(entry)));

/** As JSON without the types of members; numbers come as text. @param {{type: string, value: any}} entry @returns {string} */
function plain({ type, value }) {
  switch (type) {
    case "ARRAY": return `[${value.map(plain).join(",")}]`;
    case "DICTIONARY": return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}:${plain(each)}`).join(",")}}`;
    case "STRING":
    case "BYTES": return JSON.stringify(value);
    default: return String(value);
  }
}

/** @param {{type: string, value: any}} entry */
const shown = (entry) => (entry.type === "TIMESTAMP" ? time(entry.value) : typeof entry.value === "object" ? plain(entry) : String(entry.value));

/**
 * Makes sure that no integer, at any depth, was changed as JavaScript read it: its numbers are exact to 2^53 only.
 * @param {any} json a value with its type, or plain
 */
function requireExact(json) {
  const { type, value } = json && typeof json === "object" && !Array.isArray(json) ? json : { type: "", value: json };
  if (typeof value === "number" && type !== "DOUBLE" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw new Error('A number beyond 9,007,199,254,740,991 is to be text with its type, such as {"type": "INT64", "value": "9007199254740993"}.');
  }
  if (value && typeof value === "object") Object.values(value).forEach(requireExact);
}

export function preferencesScreen() {
  return section(
    screenHead({ title: "Preferences", detail: "Small values by key, in sync on all of a user’s devices (NSUbiquitousKeyValueStore)." }),
    // The store is drawn anew for another user only.
    () => (who.value ? store() : needsActing("Preferences")));
}

const who = computed(() => acting.value?.id ?? "");

function store() {
  const at = { container: place.peek().container, environment: place.peek().environment };
  const rows = signal(/** @type {any[]} */ ([]));
  const changed = signal(/** @type {Set<string>} */ (new Set()));
  const isLive = signal(false);
  const loaded = resource((abort) => Promise.all([everything(at, abort), call(usageOfKeys, { place: at, signal: abort, body: {} })]).then(([values, usage]) => {
    rows.value = values;
    return { usage };
  }));
  const usage = computed(() => loaded.data.value?.usage);
  const used = computed(() => ({ keys: rows.value.length, bytes: rows.value.reduce((sum, row) => sum + size(row.value), 0) }));
  const denied = () => denial(setKeys);
  /** @param {any[]} changes @param {{isNews?: boolean, isAll?: boolean}} [how] */
  const take = (changes, { isNews, isAll } = {}) => {
    const next = new Map(isAll ? [] : rows.peek().map((row) => [row.key, row]));
    for (const change of changes) {
      if (change.deleted) next.delete(change.key);
      else next.set(change.key, change);
    }
    rows.value = [...next.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
    changed.value = new Set(isNews ? changes.map((each) => each.key) : []);
  };
  effect(() => {
    if (!loaded.data.value) return;
    const abort = new AbortController();
    onCleanup(() => abort.abort());
    void follow(at, take, isLive, abort.signal);
  });
  const set = async (writes) => {
    await call(setKeys, { place: at, key: newKey(), body: { writes, device: "console" } });
    take(await everything(at).then((values) => [...rows.peek().filter((row) => !values.some((one) => one.key === row.key)).map((row) => ({ ...row, deleted: true })), ...values]));
    changed.value = new Set(writes.map((each) => each.key));
  };
  useKeys([{ key: "n", label: "New key", run: () => !denied() && edit(null, set) }, { key: "r", label: "Load again", run: loaded.reload }]);
  return view(loaded, { show: () => [
    div({ class: "cards block" },
      div({ class: "card" }, () => meter({ label: "Keys", used: used.value.keys, limit: usage.value.limits.keys, text: `${count(used.value.keys)} of ${count(usage.value.limits.keys)}` })),
      div({ class: "card" }, () => meter({ label: "All values", used: used.value.bytes, limit: usage.value.limits.storeBytes, text: `${bytes(used.value.bytes)} of ${bytes(usage.value.limits.storeBytes)}` }))),
    div({ class: "toolbar" }, () => badge(isLive.value ? "live" : "connecting…", isLive.value ? "good" : ""), span({ class: "muted" }, () => `of ${acting.value?.user ?? ""}`),
      div({ class: "toolbar-end" },
        button({ label: "Export", icon: "down", kind: "plain", onclick: () => save(rows.peek()) }),
        button({ label: "Import…", icon: "deploy", kind: "plain", denied, onclick: () => load(rows.peek(), set) }),
        button({ label: "New Key", icon: "add", kind: "primary", denied, onclick: () => edit(null, set) }))),
    () => rows.value.length === 0 ? empty({ icon: "preferences", title: "No preference yet", text: "A value appears here as soon as one of the user’s devices sets it." }) : table({
      caption: "Preferences", key: (row) => row.key, rows: () => rows.value, columns: () => [
        { label: "Key", cell: (row) => strong({ class: () => (changed.value.has(row.key) ? "fresh" : "") }, row.key) },
        { label: "Type", cell: (row) => badge(typeNames[row.value.type] ?? row.value.type) },
        { label: "Value", cell: (row) => code(cut(shown(row.value), 80)) },
        { label: "Size", class: "number", cell: (row) => bytes(size(row.value)) },
        { label: "Device", cell: (row) => row.device || span({ class: "unset", "aria-label": "unknown" }, "–") },
        { label: "Modified", cell: (row) => span({ class: "muted" }, timeAgo(row.modified)) },
        { ...actionsColumn, cell: (row) => [
          button({ label: `Edit ${row.key}`, icon: "edit", kind: "plain", hides: true, denied, onclick: () => edit(row, set) }),
          button({ label: `Delete ${row.key}`, icon: "trash", kind: "plain", hides: true, denied, onclick: () => remove(row, set) })] },
      ] }),
  ] });
}

/** All pages. @param {any} at @param {AbortSignal} [abort] */
async function everything(at, abort) {
  const values = [];
  let after;
  do {
    const page = await call(listKeys, { place: at, signal: abort, body: { after, numbersAsStrings: true } });
    values.push(...page.values);
    after = page.after;
  } while (after);
  return values;
}

/** Reads all there is, and waits for changes, again and again, until `abort`. */
async function follow(at, take, isLive, abort) {
  let syncToken;
  // While all is read: what came so far. What is not in it is gone.
  let all = /** @type {any[] | null} */ ([]);
  let pause = 1000;
  while (!abort.aborted) {
    try {
      // The first pages are what there is; then each waits for something to happen.
      const page = await call(watchKeys, { place: at, signal: abort, body: { syncToken, timeout: 20, numbersAsStrings: true } });
      if (!all && page.changes.length) take(page.changes, { isNews: isLive.peek() });
      all?.push(...page.changes);
      if (all && !page.moreComing) {
        take(all, { isAll: true });
        all = null;
      }
      if (!page.moreComing) isLive.value = true;
      syncToken = page.syncToken;
      pause = 1000;
    } catch (error) {
      if (abort.aborted) return;
      isLive.value = false;
      const { status, body } = asRequestError(error);
      if (status === 403) return;
      if (body?.syncTokenExpired) [syncToken, all] = [undefined, []];
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(pause * 2, 4000);
    }
  }
}

/** Reads what was typed as a value of a type. @param {string} type @param {string} text */
function parse(type, text) {
  switch (type) {
    case "STRING": return text;
    case "BYTES": atob(text); return text;
    case "BOOL": return text === "true";
    case "INT64": return integer(text.trim());
    case "DOUBLE": {
      if (["nan", "inf", "-inf"].includes(text.trim())) return text.trim();
      const problem = doubleProblem(text);
      if (problem) throw new Error(problem);
      return Number(text);
    }
    case "TIMESTAMP": {
      if (/^-?\d{16,}$/.test(text.trim())) return integer(text.trim());
      if (Number.isNaN(Date.parse(text))) throw new Error("A date is expected, such as 2026-01-31T12:00:00Z.");
      return Date.parse(text);
    }
    default: {
      const value = JSON.parse(text);
      if (Array.isArray(value) !== (type === "ARRAY") || typeof value !== "object" || value === null) throw new Error(type === "ARRAY" ? "A JSON array is expected." : "A JSON object is expected.");
      requireExact({ type, value });
      return value;
    }
  }
}

/** A whole number as the text that requests have. @param {string} text */
function integer(text) {
  const problem = integerProblem(text);
  if (problem) throw new Error(problem);
  return String(BigInt(text));
}

/** A value as it is edited. Members keep the form that states their types. @param {{type: string, value: any}} entry */
const editable = ({ type, value }) => (type === "TIMESTAMP" ? dateText(value) : typeof value === "object" ? JSON.stringify(value, null, 2) : String(value));

/** A date beyond those of JavaScript stays a number of milliseconds. @param {number | string} value */
function dateText(value) {
  const date = new Date(Number(value));
  return Number.isNaN(date.getTime()) ? String(value) : date.toISOString();
}

/** @param {any} row @param {(writes: any[]) => Promise<void>} set */
function edit(row, set) {
  const name = signal(row?.key ?? "");
  const type = signal(row?.value.type ?? "STRING");
  const text = signal(row ? editable(row.value) : "");
  const problem = computed(() => {
    if (!name.value) return "It needs a key.";
    if (encoder.encode(name.value).length > 64) return "A key has at most 64 bytes.";
    try {
      parse(type.value, text.value);
      return null;
    } catch (error) {
      return error instanceof SyntaxError || error instanceof DOMException ? "This is not valid yet." : error.message;
    }
  });
  return openForm({
    title: row ? row.key : "New key", submitLabel: "Save", denied: () => problem.value,
    body: () => [
      row ? null : textField({ label: "Key", isWide: true, autofocus: true, oninput: (next) => (name.value = next) }),
      field({ label: "Type" }, (attributes) => select({ ...attributes, value: type.peek(), options: Object.entries(typeNames).map(([value, label]) => ({ value, label })), onchange: (next) => {
        type.value = next;
        text.value = editable({ type: next, value: firstValues[next] });
      } })),
      () => field({ label: "Value", isWide: true, error: () => problem.value }, (attributes) =>
        type.value === "BOOL" ? select({ ...attributes, value: text.peek(), options: ["true", "false"], onchange: (next) => (text.value = next) })
          : ["ARRAY", "DICTIONARY", "STRING"].includes(type.value) ? textarea({ ...attributes, class: type.value === "STRING" ? "" : "mono", rows: "5", spellcheck: "false", value: text.peek(), autofocus: Boolean(row), oninput: (event) => (text.value = event.target.value) })
          : input({ ...attributes, value: text.peek(), autocomplete: "off", spellcheck: "false", autofocus: Boolean(row), oninput: (event) => (text.value = event.target.value) })),
    ],
    submit: async () => {
      // A value that a device changed meanwhile is not overwritten unseen.
      await set([{ key: name.peek(), value: { type: type.peek(), value: parse(type.peek(), text.peek()) }, ...(row ? { version: row.version } : {}) }]);
      toast(`Saved ${name.peek()}`);
    },
  });
}

/** @param {any} row @param {(writes: any[]) => Promise<void>} set */
const remove = (row, set) => confirm({
  title: `Delete ${row.key}?`, action: "Delete", text: "The key goes on all of the user’s devices.",
  submit: async () => {
    await set([{ key: row.key, value: null, version: row.version }]);
    toast(`Deleted ${row.key}`);
  },
});

/** @param {any[]} rows */
function save(rows) {
  const text = JSON.stringify(Object.fromEntries(rows.map((row) => [row.key, row.value])), null, 2);
  const link = html.a({ href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: `${acting.peek()?.user ?? "user"}-preferences.json` });
  link.click();
  URL.revokeObjectURL(link.href);
  toast(`Exported ${plural(rows.length, "key")}`);
}

/** @param {any[]} rows @param {(writes: any[]) => Promise<void>} set */
function load(rows, set) {
  const found = signal(/** @type {Record<string, any> | null} */ (null));
  const problem = signal("");
  return openForm({
    title: "Import preferences", submitLabel: "Import", denied: () => (found.value ? null : problem.value || "Choose a file first."),
    body: () => [
      field({ label: "File", hint: "JSON as Export makes it: values by key. Keys that are not in it stay.", isWide: true, error: () => problem.value }, (attributes) => input({ ...attributes, type: "file", accept: ".json,application/json", autofocus: true, onchange: async (event) => {
        found.value = null;
        problem.value = "";
        try {
          const json = JSON.parse(await event.target.files[0].text());
          const bad = Object.entries(json).find(([, value]) => !typeNames[value?.type] || value.value === undefined);
          if (typeof json !== "object" || json === null || Array.isArray(json)) throw new Error("An object with values by key is expected.");
          if (bad) throw new Error(`${bad[0]}: {"type": …, "value": …} is expected.`);
          Object.values(json).forEach(requireExact);
          found.value = json;
        } catch (error) {
          problem.value = error.message;
        }
      } })),
      () => { const keys = Object.keys(found.value ?? {}); const old = keys.filter((key) => rows.some((row) => row.key === key)).length;
        return found.value ? span({ class: "muted" }, `${plural(keys.length, "key")}: ${keys.length - old} new, ${old} replaced.`) : null; },
    ],
    submit: async () => {
      const writes = Object.entries(found.peek() ?? {}).map(([key, value]) => ({ key, value }));
      await set(writes);
      toast(`Imported ${plural(writes.length, "key")}`);
    },
  });
}
