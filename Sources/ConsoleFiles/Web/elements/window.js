/** Which rows of a long table are drawn: those that can be seen, and some around them. */
import { computed, signal } from "../core/signal.js";
import { html } from "../core/dom.js";

const { tbody, td, tr } = html;

/** Shorter tables are drawn whole. */
const wholeMax = 200;
/** Rows above and below those that can be seen, so that scrolling meets none that is missing. */
const spare = 30;

/**
 * @template T @param {() => T[]} rows
 * @returns {{drawn: import("../core/signal.js").Signal<T[]>, first: import("../core/signal.js").Signal<number>, above: any, below: any,
 *   follow: (scroller: HTMLElement) => void, show: (index: number) => void}}
 */
export function rowWindow(rows) {
  const first = signal(0);
  const seen = signal(60);
  let [rowHeight, scroller] = [37, null];
  const isWhole = computed(() => rows().length <= wholeMax);
  const end = computed(() => Math.min(rows().length, first.value + seen.value + 2 * spare));
  const drawn = computed(() => (isWhole.value ? rows() : rows().slice(first.value, end.value)));
  const filler = (/** @type {() => number} */ count) => () => {
    const height = isWhole.value ? 0 : count() * rowHeight;
    return height > 0 ? tbody({ class: "filler", "aria-hidden": "true" }, tr(td({ css: { height: `${height}px` } }))) : null;
  };
  const move = () => {
    const row = scroller.querySelector("tbody:not(.filler) tr");
    if (isWhole.peek() || !row) return;
    rowHeight = row.getBoundingClientRect().height || rowHeight;
    // Columns keep the width that they once had, so that they do not dance.
    for (const head of scroller.querySelectorAll("thead th")) head.style.minWidth = `${Math.max(parseFloat(head.style.minWidth) || 0, Math.floor(head.getBoundingClientRect().width))}px`;
    seen.value = Math.ceil(scroller.clientHeight / rowHeight / 10) * 10;
    first.value = Math.max(0, Math.min(Math.floor(scroller.scrollTop / rowHeight / 10) * 10 - spare, rows().length - seen.peek()));
  };
  return {
    drawn, first, above: filler(() => first.value), below: filler(() => rows().length - end.value),
    follow: (element) => {
      scroller = element;
      let isAsked = false;
      element.addEventListener("scroll", () => {
        if (isAsked) return;
        isAsked = true;
        requestAnimationFrame(() => {
          isAsked = false;
          move();
        });
      });
    },
    show: (index) => {
      if (isWhole.peek() || (index >= first.peek() + spare / 2 && index < end.peek() - spare / 2)) return;
      scroller.scrollTop = Math.max(0, index * rowHeight - scroller.clientHeight / 2);
      move();
    },
  };
}
