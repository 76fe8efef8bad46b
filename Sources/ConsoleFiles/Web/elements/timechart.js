/** Charts over time in SVG, each with the same numbers as a table. */
import { computed, signal } from "../core/signal.js";
import { html, svg } from "../core/dom.js";
import { uniqueID } from "./parts.js";

const { caption, details, div, figcaption, figure, h2, span, summary, table, tbody, td, th, thead, tr } = html;

const [width, height] = [600, 130];
const short = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const long = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** A round number that is not below the value, and half of which is round, too. @param {number} value */
export function ceiling(value) {
  if (value <= 2) return value <= 0 ? 2 : value <= 1 ? 1 : 2;
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * [1, 2, 4, 6, 8, 10].find((one) => one * unit >= value);
}

/**
 * The chart is drawn once; what changes in it follows `data`.
 * @param {{title: string, kind: "bars" | "lines", data: () => {from: number, until: number, stepSeconds: number, points: any[]},
 *     series: {name: string, tone: string, value: (point: any) => number | undefined}[], text: (value: number) => string, isWhole?: boolean, moment?: (time: number) => string}} options
 *   `moment`: what a time is called; `tone` is a class of charts.css; bars stand on each other
 */
export function timeChart({ title, kind, data, series, text, isWhole, moment: named }) {
  const id = uniqueID();
  const sum = (point) => series.reduce((total, one) => total + (one.value(point) ?? 0), 0);
  const most = (point) => (kind === "bars" ? sum(point) : Math.max(0, ...series.map((one) => one.value(point) ?? 0)));
  const scale = computed(() => {
    const { from, until, stepSeconds, points } = data();
    const step = stepSeconds * 1000;
    return { from, until, step, points, steps: Math.round((until - from) / step), top: Math.max(isWhole ? 2 : 0, ceiling(Math.max(0, ...points.map(most)))) };
  });
  const index = (point) => Math.round((point.time - scale.value.from) / scale.value.step);
  const x = (place) => (place / scale.value.steps) * width;
  const y = (value) => height - (value / scale.value.top) * height;
  const moment = named ?? ((time) => (scale.value.step < 600000 ? short : scale.value.step < 86400000 ? long : day).format(time));
  const looked = signal(/** @type {number | null} */ (null));
  const seen = computed(() => (looked.value === null ? null : (scale.value.points.find((point) => index(point) === looked.value) ?? {})));
  const bars = (point) => {
    const wide = width / scale.value.steps;
    let base = 0;
    return series.map((one) => {
      const value = one.value(point) ?? 0;
      base += value;
      return value > 0 ? svg.rect({ class: `fill ${one.tone}`, x: x(index(point)) + wide * 0.1, y: y(base), width: wide * 0.8, height: Math.max(height - y(value), 0.5) }) : null;
    });
  };
  const line = (one) => svg.path({ class: `line ${one.tone}`, d: linePath(scale.value.points.filter((point) => one.value(point) !== undefined).map((point) => [index(point), x(index(point) + 0.5), y(one.value(point))])) });
  const onmove = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    looked.value = Math.max(0, Math.min(scale.peek().steps - 1, Math.floor(((event.clientX - box.left) / box.width) * scale.peek().steps)));
  };
  return figure({ class: "time-chart", "aria-labelledby": id },
    figcaption(div({ class: "time-chart-head" }, h2({ id }, title), span({ class: "muted small" }, () => (looked.value === null ? "" : moment(scale.value.from + looked.value * scale.value.step)))),
      div({ class: "time-legend", "aria-hidden": "true" }, series.map((one) => span({ class: `key ${one.tone}` }, one.name, () => {
        const value = seen.value && one.value(seen.value);
        return seen.value ? span({ class: "legend-value" }, ` ${value === undefined || value === null ? "–" : text(value)}`) : null;
      })))),
    div({ class: "plot", "aria-hidden": "true", onpointermove: onmove, onpointerleave: () => (looked.value = null) },
      span({ class: "axis high" }, () => text(scale.value.top)), span({ class: "axis middle" }, () => text(scale.value.top / 2)),
      svg.svg({ viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" },
        [0, 0.5, 1].map((part) => svg.line({ class: "grid", x1: 0, x2: width, y1: height * part, y2: height * part })),
        () => (kind === "bars" ? scale.value.points.map(bars) : series.map(line)),
        () => (looked.value === null ? null : svg.rect({ class: "cursor", x: x(looked.value), y: 0, width: width / scale.value.steps, height }))),
      div({ class: "axis-times" }, () => {
        // The last step of a day is called by that day, not by the one that follows.
        const { from, until, step } = scale.value;
        const last = step < 86400000 ? until : until - step;
        return [from, (from + last) / 2, last].map((time) => span(moment(time)));
      })),
    details({ class: "chart-table" }, summary(`${title} as a table`),
      div({ class: "table-scroll", tabindex: "0", role: "region", "aria-label": `${title}, table` }, table(caption({ class: "hidden-text" }, title),
        thead(tr(th({ scope: "col" }, "Time"), series.map((one) => th({ scope: "col", class: "number" }, one.name)))),
        tbody(() => [...scale.value.points].reverse().map((point) => tr(th({ scope: "row" }, moment(point.time)), series.map((one) => td({ class: "number" }, one.value(point) === undefined ? "–" : text(one.value(point)))))))))));
}

/** A line that ends where there is nothing. @param {number[][]} places */
function linePath(places) {
  let last = -2;
  return places.map(([index, x, y], position) => {
    const isNext = index === last + 1;
    const isAlone = !isNext && places[position + 1]?.[0] !== index + 1;
    last = index;
    return `${isNext ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}${isAlone ? "h0.01" : ""}`;
  }).join("");
}
