/** What a record was before: its earlier versions, how each differs from what followed it, and its return. */
import { html } from "../core/dom.js";
import { call, lookupRecords, modifyRecords, newKey, recordVersions, RequestError } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, place } from "../core/router.js";
import { denial } from "../core/session.js";
import { plural, time } from "../core/format.js";
import { button, empty, errorBox, link, textField, toast, view } from "../elements/parts.js";
import { openDialog, openForm } from "../elements/dialog.js";
import { cell } from "../elements/values.js";
import { signal } from "../core/signal.js";

const { code, div, h3, li, p, span, ul } = html;

/** The versions of a record, the newest first. @param {string} recordName @param {AbortSignal} abort */
async function allVersions(recordName, abort) {
  const versions = [];
  for (;;) {
    const body = { recordName, numbersAsStrings: true, before: versions.at(-1)?.record.recordChangeTag };
    const page = await call(recordVersions, { place: place.peek(), signal: abort, body }).catch((error) => {
      // Neither the record nor anything of it.
      if (error.code === "NOT_FOUND") return { versions: [] };
      throw error;
    });
    versions.push(...page.versions);
    if (!page.moreComing || page.versions.length === 0) return versions;
  }
}

/** The record as it is; null where it is deleted. @param {string} recordName @param {AbortSignal} abort */
async function present(recordName, abort) {
  const { records: [record] } = await call(lookupRecords, { place: place.peek(), signal: abort, body: { records: [{ recordName }], numbersAsStrings: true } });
  if (record.serverErrorCode === "NOT_FOUND") return null;
  if (record.serverErrorCode) throw new RequestError(200, record);
  return record;
}

/** A value without what differs from answer to answer: where a file is, and the right to save it. @param {any} value */
const lasting = (value) => JSON.stringify(value, (key, one) => (key === "downloadURL" || key === "receipt" ? undefined : one));

/** The fields in which two records differ, or all of the first. @param {any} before @param {any} after */
function differences(before, after) {
  const names = [...new Set([...Object.keys(before.fields), ...Object.keys(after?.fields ?? {})])].sort();
  return after ? names.filter((name) => lasting(before.fields[name]?.value) !== lasting(after.fields[name]?.value)) : names;
}

/** The save that makes a record what it was. @param {any} version @param {any} now null where it is deleted */
function operation(version, now) {
  const cleared = Object.keys(now?.fields ?? {}).filter((name) => !(name in version.fields)).map((name) => [name, null]);
  const { recordName, recordType } = version;
  const record = { recordName, recordType, fields: { ...version.fields, ...Object.fromEntries(cleared) }, ...(version.parent || now?.parent ? { parent: version.parent ?? null } : {}) };
  return now ? { operationType: "update", record: { ...record, recordChangeTag: now.recordChangeTag } } : { operationType: "create", record };
}

/**
 * Shows a record's versions, from which one can be restored: that is a save as any other.
 * @param {{name: string, restored: (record: any, isNew: boolean) => void}} options
 */
export function showVersions({ name, restored }) {
  return openDialog({ title: `Versions of ${name}`, class: "wide", content: (close) => {
    const found = resource(async (abort) => {
      const [now, versions] = await Promise.all([present(name, abort), allVersions(name, abort)]);
      const limits = versions.length ? null : await call("GET /admin/1/limits", { query: { container: place.peek().container }, signal: abort });
      return { now, versions, days: limits?.limits.find((limit) => limit.name === "recordVersionDays")?.value };
    });
    const error = signal(null);
    // What is sent again after its answer was lost has the same key, so that it is done once.
    let sent = { text: "", key: "" };
    const restore = async (version, now) => {
      error.value = null;
      const body = { operations: [operation(version, now)], numbersAsStrings: true };
      const text = JSON.stringify(body);
      if (sent.text !== text) sent = { text, key: newKey() };
      try {
        const { records: [answer] } = await call(modifyRecords, { place: place.peek(), body, key: sent.key });
        if (answer.serverErrorCode) throw new RequestError(200, answer);
        restored(answer, !now);
        toast(`Restored ${name}`);
        close();
      } catch (failure) {
        error.value = asRequestError(failure);
        if (["CONFLICT", "EXISTS", "NOT_FOUND"].includes(error.peek().code)) found.reload();
      }
    };
    return [
      div({ class: "dialog-body" },
        () => (error.value ? errorBox(error.value, { title: "The version was not restored" }) : null),
        view(found, { show: ({ now, versions, days }) => versions.length === 0
          ? empty({ icon: "records", title: "No earlier versions", text: days > 0 ? `Versions are kept for ${plural(days, "day")} here, and there is none of this record.` : "This container keeps none: its limit recordVersionDays is 0.",
            action: days > 0 ? null : link(address({ screen: "limits", params: {} }), "See the limits", "button") })
          : versions.map((version, index) => versionPart(version, version.isDeletion ? null : index ? versions[index - 1].record : now, () => restore(version.record, now))) })),
      div({ class: "dialog-foot" }, button({ label: "Close", onclick: () => close() })),
    ];
  } });
}

/** @param {any} version @param {any} after what it became; null where it was deleted @param {() => void} restore */
function versionPart({ record, replaced, isDeletion }, after, restore) {
  const head = h3(`${isDeletion ? "Deleted" : "Changed"} ${time(replaced.timestamp)} by `, code(replaced.userRecordName));
  if (record.serverErrorCode) return div({ class: "stack" }, head, p(record.reason));
  const names = differences(record, after);
  return div({ class: "stack", role: "group", "aria-label": `Version ${record.recordChangeTag}` }, head,
    p({ class: "muted small" }, `Saved ${time(record.modified.timestamp)} by `, code(record.modified.userRecordName), ", tag ", code(record.recordChangeTag)),
    ul({ class: "plain-list" }, names.map((name) => li(span({ class: "muted" }, `${name}: `), cell(record.fields[name]), after ? [span({ class: "muted" }, " → "), cell(after.fields?.[name])] : null))),
    names.length ? null : p({ class: "muted" }, "No field differs."),
    div(button({ label: "Restore this version", denied: () => denial(modifyRecords, { inEnvironment: true }), onclick: restore })));
}

/** Asks for the name of a deleted record, and shows what it was. @param {(record: any, isNew: boolean) => void} restored */
export async function findDeleted(restored) {
  const name = signal("");
  const isGiven = await openForm({
    title: "Find a deleted record", submitLabel: "Show versions", submit: async () => true, denied: () => (name.value ? null : "A name is needed."),
    body: () => textField({ label: "Record name", hint: "It is found as long as its earlier versions are kept.", isWide: true, autofocus: true, oninput: (text) => (name.value = text.trim()) }),
  });
  if (isGiven) await showVersions({ name: name.peek(), restored });
}
