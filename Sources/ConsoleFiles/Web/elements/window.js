/** Which rows of a long table are drawn: those that can be seen, and some around them. */
import { computed, effect, signal, untracked } from "../core/signal.js";
import { html } from "../core/dom.js";

const { tbody, td, tr } = html;

/** Shorter tables are drawn whole. */
const wholeMax = 200;
/** Browsers make no element higher than some 17 million pixels. Above this, a pixel of scrolling goes further in the table. */
const heightMax = 12_000_000;
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
  const rowHeight = signal(37);
  let [scroller, top] = [null, 0];
  const isWhole = computed(() => rows().length <= wholeMax);
  const end = computed(() => Math.min(rows().length, first.value + seen.value + 2 * spare));
  const drawn = computed(() => (isWhole.value ? rows() : rows().slice(first.value, end.value)));
  const height = computed(() => Math.min(rows().length * rowHeight.value, heightMax));
  const above = signal(0);
  const below = computed(() => height.value - above.value - (end.value - first.value) * rowHeight.value);
  const filler = (/** @type {import("../core/signal.js").Signal<number>} */ pixels) => () =>
    isWhole.value || pixels.value <= 0 ? null : tbody({ class: "filler", "aria-hidden": "true" }, tr(td({ css: { height: `${pixels.value}px` } })));
  /** By how much more the table goes on than the scroll bar. */
  const scale = () => Math.max(1, (rows().length * rowHeight.peek() - scroller.clientHeight) / (height.peek() - scroller.clientHeight));
  const move = () => {
    const row = scroller.querySelector("tbody:not(.filler) tr");
    if (isWhole.peek() || !row) return;
    rowHeight.value = row.getBoundingClientRect().height || rowHeight.peek();
    // Columns keep the width that they once had, so that they do not dance.
    const heads = [...scroller.querySelectorAll("thead th")];
    const widths = heads.map((head) => Math.floor(head.getBoundingClientRect().width));
    heads.forEach((head, index) => widths[index] > (parseFloat(head.style.minWidth) || 0) && (head.style.minWidth = `${widths[index]}px`));
    seen.value = Math.ceil(scroller.clientHeight / rowHeight.peek() / 10) * 10;
    top = scroller.scrollTop * scale();
    first.value = Math.max(0, Math.min(Math.floor(top / rowHeight.peek() / 10) * 10 - spare, rows().length - seen.peek()));
    // Each row stands where it would if the table had its whole height.
    above.value = Math.max(0, first.peek() * rowHeight.peek() - top + scroller.scrollTop);
  };
  // More rows do not move those that are seen.
  effect(() => {
    if (rows().length * rowHeight.peek() <= heightMax || !scroller) return;
    untracked(() => queueMicrotask(() => {
      scroller.scrollTop = top / scale();
      move();
    }));
  });
  return {
    drawn, first, above: filler(above), below: filler(below),
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
      scroller.scrollTop = Math.max(0, index * rowHeight.peek() - scroller.clientHeight / 2) / scale();
      move();
    },
  };
}
