/** Load Tests: reports of `zonekeeper load`, opened from files; two of them are compared. Nothing of them is sent. */
import { computed, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { bytes, count, cut, milliseconds, plural, rate, share } from "../core/format.js";
import { badge, button, copyable, empty, screenHead, toast } from "../elements/parts.js";
import { fileDrop } from "../elements/filedrop.js";
import { table } from "../elements/table.js";
import { timeChart } from "../elements/timechart.js";

const { div, h2, li, p, section, span, strong, ul } = html;

const fileBytesMax = 20_000_000;
/** More seconds than these are drawn together. */
const stepsMax = 240;
/** A change of less is noise. */
const noise = 0.02;
const marks = ["A", "B"];
const tones = ["t1", "t3"];

/** The reports that are open, in the memory of this page. @type {import("../core/signal.js").Signal<{name: string, report: any}[]>} */
const opened = signal([]);

/** @param {any} value */
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : undefined);

/** @param {string} text */
function read(text) {
  const report = JSON.parse(text);
  const isReport = typeof report?.operation === "string" && Array.isArray(report.timeline) && number(report.operationsPerSecond) !== undefined && number(report.seconds) !== undefined;
  if (!isReport) throw new Error("not a report");
  return report;
}

/** @param {File[]} files */
async function open(files) {
  for (const file of files) {
    try {
      if (file.size > fileBytesMax) throw new Error("too large");
      const next = { name: file.name, report: read(await file.text()) };
      // The first stays, as what the others are held against.
      opened.value = [...opened.peek().slice(0, 1), next];
    } catch {
      toast(`${cut(file.name, 60)} is no report that “zonekeeper load --output” wrote as JSON.`, "bad");
    }
  }
}

export function loadsScreen() {
  const reports = computed(() => opened.value);
  return section(
    screenHead({ title: "Load Tests", detail: "Reports of load tests, side by side. They are read in this page and sent nowhere." }),
    () => (reports.value.length ? [charts(reports.value), comparison(reports.value), sentences(reports.value)] : empty({ icon: "load", title: "No report is open",
      text: "A load test writes its report to a file; open one here, or two to compare them.", action: copyable("zonekeeper load --prepare --rate 100 --duration 30 --output report.json") })),
    fileDrop({ label: "Reports", accept: ".json,application/json", multiple: true, onfiles: open,
      words: () => (reports.value.length === 0 ? "Drop one or two reports here, or choose them" : reports.value.length === 1 ? "Drop another report here to compare it, or choose one" : "Drop another report here to take the place of B, or choose one") }));
}

/**
 * What is compared: its words, the figure, how it is shown, and whether more of it is better (1), worse (-1) or neither.
 * @type {[string, (report: any) => any, (value: number) => string, number][]}
 */
const figures = [
  ["Accepted a second", (report) => report.operationsPerSecond, rate, 1],
  ["Accepted", (report) => report.succeeded, count, 0],
  ["Told to slow down", (report) => report.throttled, count, 0],
  ["Failed otherwise", (report) => report.failed - report.throttled, count, -1],
  ["Not answered", (report) => report.unanswered, count, -1],
  ["Due, and not sent", (report) => report.notIssued, count, -1],
  ["p50", (report) => report.latencyMilliseconds?.p50, milliseconds, -1],
  ["p90", (report) => report.latencyMilliseconds?.p90, milliseconds, -1],
  ["p99", (report) => report.latencyMilliseconds?.p99, milliseconds, -1],
  ["Slowest", (report) => report.latencyMilliseconds?.max, milliseconds, -1],
  ["Processor time for 1,000", (report) => report.per1000Operations?.cpuSeconds, (value) => milliseconds(value * 1000), -1],
  ["Syncs of the log for 1,000", (report) => report.per1000Operations?.logSyncs, rate, -1],
  ["Log for 1,000", (report) => report.per1000Operations?.logBytesWritten, bytes, -1],
  ["Limit, a second", (report) => report.limit?.requestsPerSecond, rate, 0],
  ["Accepted of what it allows", (report) => report.limit?.acceptedOfAllowed, (value) => share(value, 1), 0],
];

/** @param {any} report */
const pace = (report) => (report.loop === "closed" ? plural(number(report.concurrency) ?? 0, "client") : `${rate(number(report.rate) ?? 0)} a second due, ${String(report.profile ?? "")}`);

/** @param {{name: string, report: any}[]} reports */
function comparison(reports) {
  const words = [
    ["What ran", (report) => cut(report.operation, 60)], ["Pace", pace], ["For", (report) => `${report.seconds.toFixed(1)} s${report.interrupted ? ", ended early" : ""}`],
    ["On", (report) => plural(Array.isArray(report.targets) ? report.targets.length : 0, "node")],
    ["Verdict", (report) => (typeof report.verdict === "string" ? badge(cut(report.verdict, 40), report.verdict === "kept" ? "good" : "warn") : undefined)],
  ].filter(([, value]) => reports.some(({ report }) => value(report) !== undefined)).map(([label, value]) => ({ label, cells: reports.map(({ report }) => value(report) ?? "–") }));
  // What did not happen at all is not told.
  const numbers = figures.filter(([, value]) => reports.some(({ report }) => number(value(report)))).map(([label, value, text, good]) => {
    const values = reports.map(({ report }) => number(value(report)));
    return { label, cells: values.map((one) => (one === undefined ? "–" : text(one))), change: change(values, good) };
  });
  const head = (index) => span({ class: "column-head" }, span({ class: `key ${tones[index]}` }, reports.length > 1 ? `${marks[index]}: ` : "", reports[index].name),
    button({ label: `Close ${reports[index].name}`, icon: "close", kind: "plain", hides: true, onclick: () => (opened.value = reports.filter((_, one) => one !== index)) }));
  return div({ class: "block" }, table({
    caption: "Figures", key: (row) => row.label, rows: () => [...words, ...numbers], columns: () => [
      { label: "Figure", cell: (row) => row.label },
      ...reports.map((_, index) => ({ label: "", head: head(index), class: "number", cell: (row) => strong(row.cells[index]) })),
      ...(reports.length > 1 ? [{ label: "B against A", class: "number", cell: (row) => row.change ?? "" }] : []),
    ],
  }));
}

/** By how much the second is more or less. @param {(number | undefined)[]} values @param {number} good */
function change([before, after], good) {
  if (before === undefined || after === undefined) return null;
  if (before === after) return span({ class: "muted" }, "same");
  if (before === 0) return null;
  const part = (after - before) / before;
  const words = `${part > 0 ? "+" : "−"}${share(Math.abs(part), 1)}`;
  return good === 0 || Math.abs(part) < noise ? span({ class: "muted" }, words) : badge(words, part * good > 0 ? "good" : "warn");
}

/** @param {{name: string, report: any}[]} reports */
function charts(reports) {
  const longest = Math.max(...reports.map(({ report }) => report.timeline.length), 1);
  const step = Math.ceil(longest / stepsMax);
  const part = (report, place) => report.timeline.slice(place * step, (place + 1) * step);
  const average = (seconds, name) => (seconds.length ? seconds.reduce((sum, one) => sum + (number(one?.[name]) ?? 0), 0) / seconds.length : undefined);
  const slowest = (seconds, name) => seconds.reduce((most, one) => (number(one?.[name]) === undefined ? most : Math.max(most ?? 0, one[name])), undefined);
  const points = Array.from({ length: Math.ceil(longest / step) }, (_, place) => ({ time: place * step * 1000, of: reports.map(({ report }) => part(report, place)) }));
  const data = () => ({ from: 0, until: points.length * step * 1000, stepSeconds: step, points });
  const moment = (time) => `${count(Math.round(time / 1000))} s`;
  const isPair = reports.length > 1;
  const both = (value) => marks.map((name, index) => ({ name, tone: tones[index], value: (point) => value(point.of[index]) }));
  return div({ class: "chart-grid block" },
    timeChart({ data, moment, title: "Accepted a second", kind: "lines", text: rate, isWhole: true, series: isPair ? both((seconds) => average(seconds, "accepted")) : [
      { name: "accepted", tone: "t1", value: (point) => average(point.of[0], "accepted") }, { name: "told to slow down", tone: "t4", value: (point) => average(point.of[0], "throttled") }] }),
    timeChart({ data, moment, title: isPair ? "Time to answer, p99" : "Time to answer", kind: "lines", text: milliseconds, series: isPair ? both((seconds) => slowest(seconds, "p99")) :
      ["p50", "p99"].map((name, index) => ({ name, tone: ["t1", "t4"][index], value: (point) => slowest(point.of[0], name) })) }));
}

/** What the tester says about the run. @param {{name: string, report: any}[]} reports */
const sentences = (reports) => div({ class: "cards block" }, reports.map(({ name, report }) => div({ class: "card" }, h2(name),
  ul({ class: "plain-list" }, (Array.isArray(report.summary) ? report.summary : []).slice(0, 30).map((each) => li(cut(String(each), 400)))),
  p({ class: "muted small" }, cut(`${String(report.container ?? "")}, ${String(report.environment ?? "")}, seed ${String(report.seed ?? "")}`, 200)))));
