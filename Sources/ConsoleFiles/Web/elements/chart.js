/** Charts in SVG; the numbers stand beside the bars as text. */
import { html, svg } from "../core/dom.js";

const { div, span } = html;

/** @param {{label: string, bars: {label: string, value: number, text: string}[]}} options */
export function barChart({ label, bars }) {
  const most = Math.max(...bars.map((bar) => bar.value), 1);
  return div({ class: "chart", role: "list", "aria-label": label }, bars.map(({ label: name, value, text }) =>
    div({ class: "chart-row", role: "listitem" }, span({ class: "chart-label" }, name),
      svg.svg({ class: "chart-bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg.rect({ class: "bar-back", width: 100, height: 10 }), svg.rect({ class: "bar", width: Math.max((value / most) * 100, 0.4), height: 10 })),
      span({ class: "chart-value" }, text))));
}
