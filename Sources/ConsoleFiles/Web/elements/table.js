/** Tables where one row is a tab stop: arrows lead to the others and along a row, Enter opens, the space bar selects. */
import { computed, effect, onCleanup, signal } from "../core/signal.js";
import { each, html } from "../core/dom.js";
import { rowWindow } from "./window.js";

const { a, caption: captionElement, div, input, table: tableElement, tbody, td, th, thead, tr } = html;

/**
 * @template T
 * @typedef {{label: any, cell: (row: T) => any, class?: string, head?: any, sort?: "ascending" | "descending" |
 *   null}} Column
 */

/** What can be pressed in a row, without what its open menu has. @param {Element} row @returns {HTMLElement[]} */
const controls = (row) => [...row.querySelectorAll("td:not(.tick) :is(a, button, select)")].filter((each) => !each.closest("[popover]"));

/**
 * @template T
 * @param {{caption: string, columns: () => Column<T>[], rows: () => T[], key: (row: T) => string | number,
 *     href?: (row: T) => string | null, selected?: import("../core/signal.js").Signal<Set<string | number>>,
 *     current?: () => string | number | null, class?: string, isWrapped?: boolean, isWindowed?: boolean}} options
 *     `href`: where the first cell leads; `selected`: the keys of rows that are ticked; `isWindowed`: only rows that
 *     can be seen are drawn, all of one height
 */
export function table({ caption, columns, rows, key, href, selected, current, class: extra = "", isWrapped, isWindowed }) {
  const long = isWindowed ? rowWindow(rows) : null;
  const drawn = () => long?.drawn.value ?? rows();
  const places = computed(() => new Map(drawn().map((row, index) => [key(row), index])));
  const stop = signal(/** @type {string | number | null} */ (null));
  /** The rows by their keys, as they are drawn. @type {Map<string | number, Element>} */
  const elements = new Map();
  // The row that had the focus last is the stop, else the first in which something can be pressed.
  let body = null;
  effect(() => {
    void [stop.value, places.value, columns(), rows()];
    queueMicrotask(() => {
      const lists = [...body.children].map(controls);
      const own = elements.get(stop.peek());
      const at = own && controls(own).length ? [...body.children].indexOf(own) : lists.findIndex((list) => list.length > 0);
      lists.forEach((list, index) => list.forEach((each) => (each.tabIndex = index === at ? 0 : -1)));
    });
  });
  const toggle = (/** @type {string | number} */ name, isOn) => {
    const next = new Set(selected?.peek());
    if (isOn) next.add(name);
    else next.delete(name);
    if (selected) selected.value = next;
  };
  const onkeydown = (event) => {
    const target = event.target;
    const row = target.closest("tbody tr");
    const list = row ? controls(row) : [];
    const place = list.indexOf(target);
    if (place < 0 || event.defaultPrevented) return;
    if (event.key === " " && selected && target.matches("[data-stop]")) {
      event.preventDefault();
      row.querySelector("input")?.click();
      return;
    }
    const along = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (along) {
      event.preventDefault();
      list[place + along]?.focus();
      return;
    }
    const length = rows().length;
    const at = (long?.first.peek() ?? 0) + [...body.children].indexOf(row);
    // Where to, and on which side rows are passed over that have nothing to press.
    const [to, step] = { ArrowDown: [at + 1, 1], ArrowUp: [at - 1, -1], Home: [0, 1], End: [length - 1, -1], PageDown: [at + 10, -1], PageUp: [at - 10, 1] }[event.key] ?? [];
    if (to === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(length - 1, to));
    long?.show(next);
    queueMicrotask(() => {
      let index = next - (long?.first.peek() ?? 0);
      while (body.children[index] && controls(body.children[index]).length === 0) index += step;
      const found = body.children[index] ? controls(body.children[index]) : [];
      found[Math.min(place, found.length - 1)]?.focus();
    });
  };
  const goTo = (name) => document.activeElement === document.body && controls(elements.get(name) ?? document.createElement("tr"))[0]?.focus();
  // Where the row goes that has the focus, the next one gets it; where what a row opened is closed, the row.
  let [held, opened] = [null, null];
  effect(() => {
    const list = [...places.value.keys()];
    const at = list.indexOf(held?.name);
    if (!held) return;
    if (at >= 0) held.place = at;
    else if (list.length && !rows().some((row) => key(row) === held.name)) {
      const next = list[Math.min(held.place, list.length - 1)];
      queueMicrotask(() => goTo(next));
    }
  });
  effect(() => {
    const now = current?.() ?? null;
    const last = opened;
    opened = now;
    if (last !== null && now === null) queueMicrotask(() => goTo(last));
  });
  return div({ class: ["table-scroll", extra], tabindex: href ? null : "0", role: "region", "aria-label": caption, ref: (element) => long?.follow(element) },
    tableElement({ onkeydown, onfocusout: (event) => event.relatedTarget && (held = null), class: isWrapped ? "wrapped" : "", "aria-rowcount": () => (long ? rows().length + 1 : null) },
      captionElement({ class: "hidden-text" }, caption),
      thead(tr(
        selected ? th({ class: "tick", scope: "col" }, input({ type: "checkbox", "aria-label": "Select all rows",
          checked: () => rows().length > 0 && rows().every((row) => selected.value.has(key(row))),
          indeterminate: () => selected.value.size > 0 && !rows().every((row) => selected.value.has(key(row))),
          onchange: (event) => (selected.value = new Set(event.target.checked ? rows().map(key) : [])) })) : null,
        () => columns().map((column) => th({ scope: "col", class: column.class, "aria-sort": column.sort ?? null }, column.head ?? column.label)))),
      long?.above,
      tbody({ ref: (element) => (body = element) }, each(drawn, key, (row) => {
        const name = key(row.peek());
        return tr(
          {
            "aria-rowindex": () => (long ? long.first.value + (places.value.get(name) ?? 0) + 2 : null),
            class: () => [current?.() === name && "current", selected?.value.has(name) && "selected"],
            ref: (element) => {
              elements.set(name, element);
              onCleanup(() => elements.delete(name));
            },
            onfocusin: () => {
              stop.value = name;
              held = { name, place: places.peek().get(name) ?? 0 };
            },
            onclick: (event) => {
              const isOnControl = event.target.closest("a, button, input, select, label");
              if (href && !isOnControl && !getSelection()?.toString()) event.currentTarget.querySelector("[data-stop]")?.click();
            },
          },
          selected ? td({ class: "tick" }, input({ type: "checkbox", tabindex: "-1", "aria-label": `Select ${name}`, checked: () => selected.value.has(name),
            onchange: (event) => toggle(name, event.target.checked) })) : null,
          () => columns().map((column, index) => {
            const content = column.cell(row.value);
            const to = index === 0 ? href?.(row.value) : null;
            return td({ class: column.class }, to ? a({ href: to, class: "row-link", "data-stop": "" }, content) : content);
          }));
      })),
      long?.below));
}
