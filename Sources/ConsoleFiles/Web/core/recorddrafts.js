/**
 * Edits of records that are not saved, by place and record: they outlast a refresh and an expired sign-in. Those of
 * private records end with the time as their user.
 */
import { effect, root } from "./signal.js";
import { acting, lastingIDs } from "./acting.js";
import { place } from "./router.js";
import { keptInTab } from "./store.js";

/**
 * `base`: what the edited fields had when they were edited first, and `tag`: the record's change tag at that time.
 * @typedef {{values: Record<string, any>, base: Record<string, any>, tag?: string}} Draft
 */

const drafts = keptInTab("edits", /** @type {Record<string, Draft>} */ ({}));

/** Where edits of the place's records are kept: those of private records apart, and from those of public ones. */
export function draftHome() {
  const { container, environment, params } = place.value;
  return { container, environment, ...(params.db === "private" ? { acting: acting.value?.id ?? "", zone: params.zone } : {}) };
}

/**
 * @param {ReturnType<typeof draftHome>} home @param {string | null} name null for a new record
 * @param {string} [type] of a new one
 */
export const draftKey = (home, name, type) => JSON.stringify({ ...home, name, type });

/** @param {(acting: string) => boolean} isMeant */
const privateKeys = (isMeant) => Object.keys(drafts.peek()).filter((key) => {
  const { acting: id } = JSON.parse(key);
  return id !== undefined && isMeant(id);
});

/** How many records have edits that would end with a time as a user. @param {string} acting its id */
export const draftsOfActing = (acting) => privateKeys((id) => id === acting).length;

root(() => effect(() => {
  const lasting = lastingIDs.value?.split(" ");
  if (lasting) privateKeys((id) => !lasting.includes(id)).forEach(dropDraft);
}));

/** What is edited, and not saved. @param {string} key @returns {Draft | undefined} */
export const draftAt = (key) => drafts.value[key];

/** @param {string} key @param {Draft} draft one without values is forgotten; of its base, the edited fields are kept */
export function setDraft(key, { values, base, tag }) {
  const { [key]: _, ...others } = drafts.peek();
  const names = Object.keys(values);
  drafts.value = names.length ? { ...others, [key]: { values, base: Object.fromEntries(names.map((name) => [name, base[name] ?? null])), tag } } : others;
}

/** @param {string} key */
export function dropDraft(key) {
  setDraft(key, { values: {}, base: {} });
}

/** @param {any} a @param {any} b */
const isEqual = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/**
 * Keeps an edit of a record; one by which nothing differs is dropped, unless the record is just being saved.
 * @param {string} key @param {any} record @param {string} field @param {any} value @param {boolean} isSaving
 */
export function keepEdit(key, record, field, value, isSaving) {
  const draft = drafts.peek()[key] ?? { values: {}, base: {}, tag: record.recordChangeTag };
  const { [field]: _, ...others } = draft.values;
  const isNone = !isSaving && isEqual(value, record.fields[field]?.value ?? null);
  setDraft(key, { ...draft, values: isNone ? others : { ...others, [field]: value }, base: { [field]: record.fields[field], ...draft.base } });
}

/**
 * Forgets what was saved; what was edited since then stays, as edits of the saved record.
 * @param {string} key @param {Record<string, any>} sent the values @param {any} saved the record
 * @param {string} to where edits of it are kept
 */
export function takeSaved(key, sent, saved, to) {
  const later = Object.entries(drafts.peek()[key]?.values ?? {}).filter(([field, value]) => !isEqual(value, sent[field]));
  dropDraft(key);
  setDraft(to, { values: Object.fromEntries(later), base: saved.fields, tag: saved.recordChangeTag });
}
