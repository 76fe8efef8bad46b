/** Edits of records that are not saved, by place and record: they outlast a refresh and an expired sign-in. */
import { acting } from "./acting.js";
import { place } from "./router.js";
import { keptInTab } from "./store.js";

/**
 * `base`: what the edited fields had when they were edited first, and `tag`: the record's change tag at that time.
 * @typedef {{values: Record<string, any>, base: Record<string, any>, tag?: string}} Draft
 */

const drafts = keptInTab("drafts", /** @type {Record<string, Draft>} */ ({}));

/**
 * Where edits of a record of the place are kept: those of private records apart, and from those of public ones.
 * @param {string | null} name null for a new record @param {string} [type] of a new one
 */
export function draftKey(name, type) {
  const { container, environment, params } = place.value;
  const home = params.db === "private" ? [acting.value?.userRecordName, params.zone] : [];
  return JSON.stringify([container, environment, ...home, name, ...(name === null ? [type] : [])]);
}

/** What is edited, and not saved. @param {string} key @returns {Draft | undefined} */
export const draftAt = (key) => drafts.value[key];

/** @param {string} key @param {Draft} draft one without values is forgotten */
export function setDraft(key, draft) {
  const { [key]: _, ...others } = drafts.peek();
  drafts.value = Object.keys(draft.values).length ? { ...others, [key]: draft } : others;
}

/** @param {string} key */
export const dropDraft = (key) => setDraft(key, { values: {}, base: {} });

/** Keeps an edit of a record; one by which nothing differs is none. @param {string} key @param {any} record @param {string} field @param {any} value */
export function keepEdit(key, record, field, value) {
  const draft = drafts.peek()[key] ?? { values: {}, base: {}, tag: record.recordChangeTag };
  const { [field]: _, ...values } = draft.values;
  const { [field]: first = record.fields[field] ?? null, ...base } = draft.base;
  const isSame = JSON.stringify(value) === JSON.stringify(record.fields[field]?.value ?? null);
  setDraft(key, isSame ? { ...draft, values, base } : { ...draft, values: { ...values, [field]: value }, base: { ...base, [field]: first } });
}
