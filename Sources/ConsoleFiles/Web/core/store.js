/** What this browser remembers. Nothing secret is kept here. */
import { effect, signal } from "./signal.js";

/** A signal that is kept from visit to visit. @template T @param {string} name @param {T} initial */
export function remembered(name, initial) {
  return kept(localStorage, name, initial);
}

/** A signal that is kept as long as the tab. @template T @param {string} name @param {T} initial */
export function keptInTab(name, initial) {
  return kept(sessionStorage, name, initial);
}

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
