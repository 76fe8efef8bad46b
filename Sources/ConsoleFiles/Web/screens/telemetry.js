/** Telemetry: how many requests, how fast, which errors, how many users, over time. */
import { computed } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { every, resource } from "../core/resource.js";
import { address, place, setParams } from "../core/router.js";
import { session } from "../core/session.js";
import { bytes, count, milliseconds, plural, rate, share } from "../core/format.js";
import { alertPanel } from "../elements/alerts.js";
import { badge, button, checkbox, empty, screenHead, select, view } from "../elements/parts.js";
import { table } from "../elements/table.js";
import { timeChart } from "../elements/timechart.js";
import { missingNodes } from "../elements/requests.js";

const { a, div, h2, label, section, span, strong } = html;

const ranges = [["hour", "1 hour"], ["day", "24 hours"], ["month", "30 days"]];
const groups = ["records/write", "records/read", "changes", "zones", "users", "subscriptions", "assets", "preferences", "notifications", "sign-in", "administration", "other"];
const tones = ["t4", "t2", "t3", "t5", "t6", "t1"];

export function telemetryScreen() {
  const params = computed(() => place.value.params);
  const range = computed(() => params.value.range ?? "hour");
  const found = resource((abort) => {
    const { container, environment } = place.value;
    const { op, all } = params.value;
    return call("GET /admin/1/telemetry", { query: { range: range.value, operation: op, ...(all ? {} : { container, environment }) }, signal: abort });
  });
  const data = () => /** @type {any} */ (found.data.value);
  const isEmpty = computed(() => found.data.value?.points.length === 0);
  every(() => range.peek() === "hour" && found.reload(), 5000);
  return section({ class: "telemetry" },
    screenHead({ title: "Telemetry", detail: "What requests came to, on all nodes together. Nodes keep it in memory and begin anew when they are started.",
      actions: [
        div({ class: "segmented", role: "group", "aria-label": "Range" }, ranges.map(([value, words]) =>
          html.button({ type: "button", "aria-pressed": () => String(range.value === value), onclick: () => setParams({ range: value === "hour" ? null : value }) }, words))),
        button({ label: "Refresh", icon: "refresh", kind: "plain", hides: true, onclick: found.reload })] }),
    div({ class: "toolbar" },
      label({ class: "inline" }, span("Operation"), select({ value: () => params.value.op ?? "", options: [{ value: "", label: "All" }, ...groups], onchange: (next) => setParams({ op: next }) })),
      () => (session.value?.containers ? null : checkbox({ label: "All containers", checked: () => Boolean(params.value.all), onchange: (isOn) => setParams({ all: isOn ? "1" : null }) }))),
    view(found, { isSteady: true, show: () => [
      () => missingNodes(data().nodes, "their requests are not counted here"),
      () => figures(data()),
      () => (isEmpty.value ? empty({ icon: "telemetry", title: "No request in this time", text: "Charts appear with the first request." }) : [charts(data), breakdown(data)]),
    ] }),
    alertPanel());
}

/** @param {any} data */
function figures({ total, from, until, stepSeconds }) {
  const seconds = Math.max(stepSeconds, (Math.min(Date.now(), until) - from) / 1000);
  const figure = (words, value, detail, tone = "") => div({ class: "card figure-card" }, span({ class: "muted" }, words), strong({ class: ["big", tone] }, value), span({ class: "muted small" }, detail));
  return div({ class: "cards figure-cards block" },
    figure("Requests", count(total.requests), `${rate(total.requests / seconds)} a second on average`),
    figure("Errors", count(total.errors), `${share(total.errors, total.requests) || "0.0 %"} of the requests`, total.errors ? "warn-text" : ""),
    figure("p95", milliseconds(total.p95), `p50 ${milliseconds(total.p50)}, p99 ${milliseconds(total.p99)}`),
    figure("Active users", count(total.activeUsers), total.activeUsers > 128 ? "estimated" : "signed in, of all devices"),
    figure("Carried", bytes(total.bytesIn + total.bytesOut), `${bytes(total.bytesIn)} in, ${bytes(total.bytesOut)} out`),
    figure("Notifications", count(total.notifications), "to devices and webhooks"));
}

/** @param {() => any} data */
function charts(data) {
  const total = () => data().total;
  const codes = computed(() => Object.entries(total().errorsByCode ?? {}).sort((one, other) => Number(other[1]) - Number(one[1])).map(([name]) => name).join(" "));
  const errors = () => {
    const names = codes.value.split(" ");
    const shown = names.length > 6 ? [...names.slice(0, 5), "others"] : names;
    return shown.map((name, index) => ({ name, tone: tones[index], value: (point) => (name === "others" ? names.slice(5) : [name]).reduce((sum, one) => sum + (point.errorsByCode?.[one] ?? 0), 0) }));
  };
  const hasNotifications = computed(() => total().notifications > 0);
  return div({ class: "chart-grid block" },
    timeChart({ data, title: "Requests", kind: "bars", text: rate, isWhole: true, series: [
      { name: "answered", tone: "t1", value: (point) => (point.requests ?? 0) - (point.errors ?? 0) }, { name: "failed", tone: "t4", value: (point) => point.errors ?? 0 }] }),
    timeChart({ data, title: "Time to answer", kind: "lines", text: milliseconds, series: [
      { name: "p50", tone: "t1", value: (point) => point.p50 }, { name: "p95", tone: "t3", value: (point) => point.p95 }, { name: "p99", tone: "t4", value: (point) => point.p99 }] }),
    () => (codes.value ? timeChart({ data, title: "Errors by code", kind: "bars", text: rate, isWhole: true, series: errors() }) : null),
    timeChart({ data, title: "Bandwidth", kind: "bars", text: bytes, series: [
      { name: "in", tone: "t2", value: (point) => point.bytesIn ?? 0 }, { name: "out", tone: "t1", value: (point) => point.bytesOut ?? 0 }] }),
    timeChart({ data, title: "Active users", kind: "bars", text: rate, isWhole: true, series: [{ name: "users", tone: "t5", value: (point) => point.activeUsers ?? 0 }] }),
    () => (hasNotifications.value ? timeChart({ data, title: "Notifications", kind: "bars", text: rate, isWhole: true, series: [{ name: "told", tone: "t6", value: (point) => point.notifications ?? 0 }] }) : null));
}

/** @param {() => any} data */
function breakdown(data) {
  const hasSeveral = computed(() => data().containers.length > 1);
  const cells = [
    { label: "Requests", class: "number", cell: (row) => count(row.requests) },
    { label: "Errors", class: "number", cell: (row) => (row.errors ? badge(count(row.errors), "warn") : "0") },
    { label: "p50", class: "number", cell: (row) => milliseconds(row.p50) }, { label: "p95", class: "number", cell: (row) => milliseconds(row.p95) }, { label: "p99", class: "number", cell: (row) => milliseconds(row.p99) },
    { label: "In", class: "number", cell: (row) => bytes(row.bytesIn) }, { label: "Out", class: "number", cell: (row) => bytes(row.bytesOut) },
    { label: "Users", class: "number", cell: (row) => count(row.activeUsers) },
  ];
  return [
    section({ class: "block" }, div({ class: "block-head" }, h2("By operation"), a({ class: "link", href: address({ screen: "logs", params: {} }) }, "See the requests")),
      table({ caption: "By operation", key: (row) => row.operation, rows: () => data().operations, columns: () => [{ label: "Operation", cell: (row) => strong(row.operation) }, ...cells] })),
    () => hasSeveral.value ? section({ class: "block" }, div({ class: "block-head" }, h2("By container"), span({ class: "muted" }, () => plural(data().total.requests, "request"))),
      table({ caption: "By container", key: (row) => `${row.container}/${row.environment}`, rows: () => data().containers, columns: () => [
        { label: "Container", cell: (row) => [row.container || span({ class: "muted" }, "none"), " ", row.environment ? badge(row.environment) : null] }, ...cells] })) : null,
  ];
}
