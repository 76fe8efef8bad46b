/**
 * What this browser remembers. Nothing secret is kept from visit to visit; what is kept in the tab is what was edited
 * and not saved, until its person signs out.
 */
import { effect, signal } from "./signal.js";

/** A signal that is kept from visit to visit. @template T @param {string} name @param {T} initial */
export function remembered(name, initial) {
  return kept(localStorage, name, initial);
}

/** @type {{value: import("./signal.js").Signal<any>, initial: any}[]} */
const inTab = [];

/** A signal that is kept in the tab, until that is to forget. @template T @param {string} name @param {T} initial */
export function keptInTab(name, initial) {
  const value = kept(sessionStorage, name, initial);
  inTab.push({ value, initial });
  return value;
}

/** Whether the tab keeps anything. */
export const keepsInTab = () => inTab.some(({ value, initial }) => JSON.stringify(value.peek()) !== JSON.stringify(initial));

/** Forgets all that is kept in the tab. */
export const forgetTab = () => inTab.forEach(({ value, initial }) => (value.value = initial));

/** @template T @param {Storage} storage @param {string} name @param {T} initial */
function kept(storage, name, initial) {
  const key = `zonekeeper.${name}`;
  let first = initial;
  try {
    first = JSON.parse(storage.getItem(key) ?? "") ?? initial;
  } catch {
    // Never kept, or by something else.
  }
  const value = signal(first);
  effect(() => {
    try {
      storage.setItem(key, JSON.stringify(value.value));
    } catch {
      // A full or forbidden storage only forgets.
    }
  });
  return value;
}

export const theme = remembered("theme", /** @type {"system" | "light" | "dark"} */ ("system"));
export const hasLetterKeys = remembered("letterKeys", true);
