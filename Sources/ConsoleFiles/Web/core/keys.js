/** Shortcuts of the keyboard. Letters can be switched off, and never count while something is typed. */
import { onCleanup } from "./signal.js";
import { hasLetterKeys } from "./store.js";

/** @typedef {{key: string, label: string, run: () => any}} Shortcut `key` such as "n", "/" or "Ctrl+S" */
/** @type {Shortcut[]} */
const shortcuts = [];

/** Has keys do something until the effect around ends. @param {Shortcut[]} list */
export function useKeys(list) {
  shortcuts.push(...list);
  onCleanup(() => list.forEach((each) => shortcuts.splice(shortcuts.indexOf(each), 1)));
}

/** What keys do now, the newest first. */
export const presentKeys = () => [...shortcuts].reverse();

const typing = "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]";

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  const isControl = event.ctrlKey || event.metaKey;
  const name = isControl ? `Ctrl+${event.key.toUpperCase()}` : event.key;
  // An open dialog has the keyboard for itself.
  if (document.querySelector("dialog[open]")) {
    if (name === "Ctrl+S") {
      event.preventDefault();
      const forms = document.querySelectorAll("dialog[open] form");
      (forms[forms.length - 1])?.requestSubmit();
    }
    return;
  }
  // The browser closes an open menu by itself.
  if (name === "Escape" && document.querySelector(":popover-open")) return;
  if (!isControl && name !== "Escape") {
    if (event.target.closest(typing) || event.altKey || !hasLetterKeys.peek()) return;
  }
  const found = presentKeys().find((each) => each.key === name);
  if (!found) return;
  event.preventDefault();
  found.run();
});
