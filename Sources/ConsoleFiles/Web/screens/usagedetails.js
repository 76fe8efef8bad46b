/** Usage by day and by record type: charts with their tables, and when the public data are full. */
import { computed, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { place } from "../core/router.js";
import { bytes, count, plural } from "../core/format.js";
import { button, empty, toast, view } from "../elements/parts.js";
import { barChart } from "../elements/chart.js";
import { table } from "../elements/table.js";
import { timeChart } from "../elements/timechart.js";

const { div, h2, p, strong } = html;

const here = () => ({ container: place.peek().container, environment: place.peek().environment });

/** What is said of the growth of public data. @param {any} data */
function growth({ bytesPerDay, daysUntilFull }) {
  if (bytesPerDay === undefined) return "How fast public data grow is known after two days with requests.";
  const rate = `Public data ${bytesPerDay < 0 ? "shrink" : "grow"} by ${bytes(Math.abs(bytesPerDay))} a day`;
  if (daysUntilFull === undefined) return `${rate}.`;
  return daysUntilFull === 0 ? `${rate}, and are at their limit.` : `${rate}: full in ${plural(daysUntilFull, "day")} at this rate.`;
}

/** Requests, transfer, users and storage of the last 90 days. */
export function usageByDay() {
  const found = resource((abort) => {
    const { container, environment } = place.value;
    return call("GET /admin/1/usage/days", { query: { container, environment }, signal: abort }).then((data) => ({ ...data, points: data.days }));
  });
  const data = () => /** @type {any} */ (found.data.value);
  const isThere = computed(() => found.data.value !== undefined);
  const isSoon = () => data().daysUntilFull !== undefined && data().daysUntilFull <= 30;
  return div({ class: "block usage-days" }, div({ class: "block-head" }, h2("By day")),
    view({ ...found, data: ({ get value() { return isThere.value ? true : undefined; } }) }, { show: () => () => data().days.length === 0
      ? empty({ icon: "usage", title: "No day yet", text: "A day appears two minutes after its first request, and stays for 90 days." })
      : [
        p({ class: () => (isSoon() ? "warn-text" : "muted") }, () => growth(data())),
        div({ class: "chart-grid" },
          timeChart({ data, title: "Requests", kind: "bars", text: count, isWhole: true, series: [
            { name: "answered", tone: "t1", value: (day) => day.requests - day.errors }, { name: "failed", tone: "t4", value: (day) => day.errors }] }),
          timeChart({ data, title: "Transfer", kind: "bars", text: bytes, series: [
            { name: "in", tone: "t2", value: (day) => day.bytesIn }, { name: "out", tone: "t1", value: (day) => day.bytesOut }] }),
          timeChart({ data, title: "Active users", kind: "bars", text: count, isWhole: true, series: [{ name: "users", tone: "t5", value: (day) => day.activeUsers }] }),
          timeChart({ data, title: "Storage", kind: "bars", text: bytes, series: [
            { name: "public", tone: "t1", value: (day) => day.publicBytes }, { name: "private", tone: "t3", value: (day) => day.privateBytes }, { name: "assets", tone: "t6", value: (day) => day.assetBytes }] })),
      ] }));
}

/** Records by type: counted on request, as that reads all of them. */
export function usageByType() {
  const state = signal(/** @type {null | {types: any[], isCounting: boolean, records: number}} */ (null));
  const run = async () => {
    /** @type {Map<string, {name: string, records: number, bytes: number}>} */ const sums = new Map();
    const asked = here();
    try {
      for (let after; ;) {
        const page = await call("GET /admin/1/usage", { query: { ...asked, types: true, after } });
        for (const type of page.databases.flatMap((database) => database.types)) {
          const sum = sums.get(type.name) ?? { name: type.name, records: 0, bytes: 0 };
          sums.set(type.name, { ...sum, records: sum.records + type.records, bytes: sum.bytes + type.bytes });
        }
        const types = [...sums.values()].sort((one, other) => other.bytes - one.bytes);
        const isOther = asked.container !== place.peek().container || asked.environment !== place.peek().environment;
        if (isOther) return (state.value = null);
        after = page.next;
        state.value = { types, isCounting: Boolean(after), records: types.reduce((total, type) => total + type.records, 0) };
        if (!after) return;
      }
    } catch (error) {
      state.value = null;
      toast(asRequestError(error).message, "bad");
    }
  };
  return div({ class: "block usage-types" },
    div({ class: "block-head" }, h2("By record type"), button({ label: "Count by type", icon: "refresh", onclick: run })),
    () => {
      const counted = state.value;
      if (!counted) return p({ class: "muted" }, "Counting reads every record of this environment once.");
      if (counted.types.length === 0) return empty({ icon: "usage", title: "No records", text: "There is nothing to count in this environment." });
      return [
        p({ class: "muted", role: "status" }, counted.isCounting ? `Counting: ${plural(counted.records, "record")} so far …` : `${plural(counted.records, "record")} counted. Bytes are those of names and values, without index rows and files.`),
        barChart({ label: "Bytes by record type", bars: counted.types.slice(0, 8).map((type) => ({ label: type.name, value: type.bytes, text: bytes(type.bytes) })) }),
        table({ caption: "Usage by record type", key: (row) => row.name, rows: () => counted.types, columns: () => [
          { label: "Record type", cell: (row) => strong(row.name) },
          { label: "Records", class: "number", cell: (row) => count(row.records) },
          { label: "Data", class: "number", cell: (row) => bytes(row.bytes) }] }),
      ];
    });
}
