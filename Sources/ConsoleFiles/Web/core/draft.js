/**
 * Edits of the schema that are not saved: types, indexes and roles gather here, and are reviewed and saved as one
 *   plan.
 */
import { computed, effect, root, signal, untracked } from "./signal.js";
import { place } from "./router.js";
import { schema } from "./context.js";
import { keptInTab } from "./store.js";

/** @typedef {import("./schema.js").Schema} Schema */

/** By place: the version that the edits began with, and the whole schema after them. */
const drafts = keptInTab("schema", /** @type {Record<string, {base: Schema, edited: Schema}>} */ ({}));

const key = root(() => computed(() => `${place.value.container}/${place.value.environment}`));

/** The schema as edited; the server's where nothing was. @type {import("./signal.js").Signal<Schema | undefined>} */
export const edited = root(() => computed(() => drafts.value[key.value]?.edited ?? schema.value));

/** The version that the edits were made on. */
export const baseVersion = root(() => computed(() => drafts.value[key.value]?.base.version ?? schema.value?.version));

/** Changes the schema: `change` gets a copy. @param {(copy: Schema) => void} change */
export function edit(change) {
  const base = drafts.peek()[key.peek()]?.base ?? schema.peek();
  if (!base) throw new Error("The schema is not loaded yet.");
  const copy = structuredClone(edited.peek() ?? base);
  change(copy);
  const { [key.peek()]: _, ...others } = drafts.peek();
  drafts.value = words(base, copy).length === 0 ? others : { ...others, [key.peek()]: { base, edited: copy } };
}

export function discard() {
  const { [key.peek()]: _, ...others } = drafts.peek();
  drafts.value = others;
}

/** What was edited, in words. */
export const edits = root(() => computed(() => {
  const draft = drafts.value[key.value];
  return draft ? words(draft.base, draft.edited) : [];
}));

/** @param {Schema} before @param {Schema} after */
function words(before, after) {
  const found = [];
  const compare = (old, now, /** @type {(one: any) => string} */ name, noun, /** @type {(a: any, b: any) => void} */ both) => {
    for (const one of now) {
      const same = old.find((each) => name(each) === name(one));
      if (same) both(same, one);
      else found.push(`add ${noun} ${name(one)}`);
    }
    for (const one of old) if (!now.some((each) => name(each) === name(one))) found.push(`delete ${noun} ${name(one)}`);
  };
  compare(before.roles, after.roles, (role) => role, "role", () => {});
  compare(before.types, after.types, (type) => type.name, "record type", (old, now) => {
    const isPlain = (field) => !field.system || field.indexes.length > 0;
    compare(old.fields.filter(isPlain), now.fields.filter(isPlain), (field) => field.name, `field ${now.name}.`, (a, b) => {
      if (a.type !== b.type) found.push(`change the type of ${now.name}.${a.name}`);
      compare(a.indexes, b.indexes, (one) => one.index, `index on ${now.name}.${a.name}:`, () => {});
    });
    const text = (type) => JSON.stringify(type.grants.filter((one) => one.permissions.length).map((one) => [one.role, [...one.permissions].sort()]).sort());
    if (text(old) !== text(now)) found.push(`change who may use ${now.name}`);
  });
  return found.map((text) => text.replace(". ", "."));
}

/** Tells where the server's schema went on since the edits began. */
export const isBehind = signal(false);
root(() => effect(() => {
  const draft = drafts.value[key.value];
  const now = schema.value;
  untracked(() => (isBehind.value = Boolean(draft && now && now.version !== draft.base.version)));
}));
