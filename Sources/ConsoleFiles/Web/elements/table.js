/** Tables with one tab stop: arrows go from row to row, Enter opens, the space bar selects. */
import { computed, signal } from "../core/signal.js";
import { each, html } from "../core/dom.js";
import { rowWindow } from "./window.js";

const { a, caption: captionElement, div, input, table: tableElement, tbody, td, th, thead, tr } = html;

/**
 * @template T
 * @typedef {{label: any, cell: (row: T) => any, class?: string, head?: any, sort?: "ascending" | "descending" |
 *   null}} Column
 */

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
  const stopKey = computed(() => (stop.value !== null && places.value.has(stop.value) ? stop.value : places.value.keys().next().value));
  const toggle = (/** @type {string | number} */ name, isOn) => {
    const next = new Set(selected?.peek());
    if (isOn) next.add(name);
    else next.delete(name);
    if (selected) selected.value = next;
  };
  const onkeydown = (event) => {
    const target = event.target;
    const row = target.closest("tbody tr");
    if (!row || !target.matches("[data-stop]")) return;
    if (event.key === " " && selected) {
      event.preventDefault();
      row.querySelector("input")?.click();
      return;
    }
    const [body, length] = [row.parentElement, rows().length];
    const at = (long?.first.peek() ?? 0) + [...body.children].indexOf(row);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: length - 1, PageDown: at + 10, PageUp: at - 10 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(length - 1, to));
    long?.show(next);
    queueMicrotask(() => body.children[next - (long?.first.peek() ?? 0)]?.querySelector("[data-stop]")?.focus());
  };
  return div({ class: ["table-scroll", extra], tabindex: href ? null : "0", role: "region", "aria-label": caption, ref: (element) => long?.follow(element) },
    tableElement({ onkeydown, class: isWrapped ? "wrapped" : "", "aria-rowcount": () => (long ? rows().length + 1 : null) },
      captionElement({ class: "hidden-text" }, caption),
      thead(tr(
        selected ? th({ class: "tick", scope: "col" }, input({ type: "checkbox", "aria-label": "Select all rows",
          checked: () => rows().length > 0 && rows().every((row) => selected.value.has(key(row))),
          indeterminate: () => selected.value.size > 0 && !rows().every((row) => selected.value.has(key(row))),
          onchange: (event) => (selected.value = new Set(event.target.checked ? rows().map(key) : [])) })) : null,
        () => columns().map((column) => th({ scope: "col", class: column.class, "aria-sort": column.sort ?? null }, column.head ?? column.label)))),
      long?.above,
      tbody(each(drawn, key, (row) => {
        const name = key(row.peek());
        return tr(
          {
            "aria-rowindex": () => (long ? long.first.value + (places.value.get(name) ?? 0) + 2 : null),
            class: () => [current?.() === name && "current", selected?.value.has(name) && "selected"],
            onfocusin: () => (stop.value = name),
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
            return td({ class: column.class }, to ? a({ href: to, class: "row-link", "data-stop": "", tabindex: () => (stopKey.value === name ? "0" : "-1") }, content) : content);
          }));
      })),
      long?.below));
}
