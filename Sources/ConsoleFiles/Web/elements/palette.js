/** Ctrl K: a screen, a container, a record type, or a record by its name. */
import { computed, signal } from "../core/signal.js";
import { each, html } from "../core/dom.js";
import { address, navigate, place } from "../core/router.js";
import { containers, schema } from "../core/context.js";
import { openDialog } from "./dialog.js";
import { uniqueID } from "./parts.js";
import { icon } from "./icon.js";
import { groups, screens } from "../screens/all.js";

const { div, input, li, span, ul } = html;

/** @typedef {{label: string, detail: string, icon: string, href: string}} Target */

/** @returns {Target[]} */
function targets() {
  const { container } = place.peek();
  const names = groups.filter((group) => container || !group.needsContainer).flatMap((group) => group.names);
  return [
    ...names.map((name) => ({ label: screens[name].title, detail: "Screen", icon: screens[name].icon, href: address({ screen: name, params: {} }) })),
    ...(schema.peek()?.types ?? []).flatMap(({ name }) => [
      ...(name === "Users" ? [] : [{ label: name, detail: "Records", icon: "records", href: address({ screen: "records", params: { type: name } }) }]),
      { label: name, detail: "Record type", icon: "types", href: address({ screen: "types", params: { type: name } }) }]),
    ...(containers.data.peek() ?? []).filter((one) => !one.deleted).map(({ name }) => ({ label: name, detail: "Container", icon: "container", href: address({ container: name, screen: "records", params: {} }) })),
  ];
}

export async function openPalette() {
  const all = targets();
  const text = signal("");
  const at = signal(0);
  const found = computed(() => {
    const needle = text.value.trim().toLowerCase();
    const matching = all.filter(({ label }) => label.toLowerCase().includes(needle));
    const rank = (/** @type {Target} */ target) => (target.label.toLowerCase().startsWith(needle) ? 0 : 1);
    const sorted = needle ? matching.sort((a, b) => rank(a) - rank(b)) : matching;
    const isRequest = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(needle);
    if (isRequest && place.peek().container) return [{ label: needle, detail: "Look it up in the log", icon: "log", href: address({ screen: "logs", params: { request: text.value.trim() } }) }];
    const record = needle && place.peek().container ? [{ label: text.value.trim(), detail: "Open the record of this name", icon: "search", href: address({ screen: "records", params: { record: text.value.trim() } }) }] : [];
    return [...sorted.slice(0, 40), ...record];
  });
  const listID = uniqueID();
  const target = await openDialog({
    title: "Go to", class: "palette", content: (close) => {
      const go = (/** @type {Target | undefined} */ target) => target && close(target);
      const onkeydown = (event) => {
        const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (by) {
          event.preventDefault();
          at.value = (at.peek() + by + found.peek().length) % Math.max(1, found.peek().length);
          document.getElementById(`${listID}-${at.peek()}`)?.scrollIntoView({ block: "nearest" });
        } else if (event.key === "Enter") {
          event.preventDefault();
          go(found.peek()[at.peek()]);
        }
      };
      return div({ class: "dialog-body" },
        input({ role: "combobox", "aria-label": "Go to", "aria-expanded": "true", "aria-controls": listID, "aria-activedescendant": () => `${listID}-${at.value}`, autofocus: true, placeholder: "Screen, type, container or record", autocomplete: "off", spellcheck: "false",
          onkeydown, oninput: (event) => { text.value = event.target.value; at.value = 0; } }),
        ul({ role: "listbox", id: listID, "aria-label": "Found" }, each(() => found.value.map((target, index) => ({ target, index })), ({ index }) => index, (item) =>
          li({ role: "option", id: `${listID}-${item.peek().index}`, "aria-selected": () => String(at.value === item.value.index), onclick: () => go(item.peek().target), onmousemove: () => (at.value = item.peek().index) },
            () => icon(item.value.target.icon), span({ class: "menu-label" }, () => item.value.target.label), span({ class: "muted small" }, () => item.value.target.detail)))));
    },
  });
  if (!target) return;
  // The focus goes with the person, to the head of the screen.
  document.activeElement?.blur();
  await navigate(target.href);
}
