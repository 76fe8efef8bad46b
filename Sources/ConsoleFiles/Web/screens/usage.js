/** Usage: what databases hold, as a share of what they may. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, place } from "../core/router.js";
import { bytes, count, isUnlimited, plural, share } from "../core/format.js";
import { badge, button, empty, meter, screenHead, toast, view } from "../elements/parts.js";
import { exportMenu } from "../elements/dialog.js";
import { barChart } from "../elements/chart.js";
import { table } from "../elements/table.js";
import { usageByDay, usageByType } from "./usagedetails.js";

const { a, div, h2, p, section, span, strong } = html;

/** @param {Record<string, any>} query @param {AbortSignal} [abort] */
const usageOf = (query, abort) => call("GET /admin/1/usage", { query: { container: place.peek().container, environment: place.peek().environment, ...query }, signal: abort });

/** @param {any} database */
const nameOf = (database) => (database.scope === "public" ? "Public" : (database.user ?? database.userRecordName ?? "unknown user"));

export function usageScreen() {
  const pages = signal([]);
  const next = signal(undefined);
  const first = resource((abort) => {
    void place.value;
    return usageOf({}, abort).then((page) => {
      pages.value = page.databases;
      next.value = page.next;
      return page;
    });
  });
  const more = async () => {
    try {
      const page = await usageOf({ after: next.peek() });
      pages.value = [...pages.peek(), ...page.databases];
      next.value = page.next;
    } catch (error) {
      toast(asRequestError(error).message, "bad");
    }
  };
  const verified = signal(null);
  const verify = async () => {
    try {
      const page = await usageOf({ verify: true });
      const wrong = page.databases.filter((one) => one.recount && !one.recount.isEqual);
      verified.value = wrong.length ? `Counted again: ${wrong.map(nameOf).join(", ")} differ from the ledger.` : `Counted again: the ledger of ${plural(page.databases.length, "database")} is right.`;
    } catch (error) {
      toast(asRequestError(error).message, "bad");
    }
  };
  return section(
    screenHead({ title: "Usage", detail: "What this environment’s databases hold, and what this month’s requests carried.", actions: [
      exportMenu(() => [["databases", "Databases"], ["zones", "Zones"], ["types", "Record types by database"], ["days", "Days"]].flatMap(([of, label]) => [["csv", "CSV"], ["lines", "JSON lines"]].map(([format, name]) =>
        ({ label: `${label} as ${name}`, operation: "GET /admin/1/usage/export", query: { container: place.peek().container, environment: place.peek().environment, of, format } })))),
      button({ label: "Count again", icon: "check", onclick: verify }), button({ label: "Refresh", icon: "refresh", onclick: first.reload })] }),
    () => (verified.value ? div({ class: "notice", role: "status" }, verified.value) : null),
    view(first, {
      show: ({ transfer }) => [
        () => { const open = pages.value.find((one) => one.scope === "public"); return div({ class: "cards block" },
          div({ class: "card" }, meter({ label: "Public data", used: open?.bytes ?? 0, limit: open?.limitBytes ?? 0, text: open ? `${bytes(open.bytes)} of ${bytes(open.limitBytes)} · ${share(open.bytes, open.limitBytes)}` : "nothing yet" }),
            p({ class: "muted small" }, open ? `${plural(open.records, "record")}${isUnlimited(open.limitRecords) ? "" : ` of ${count(open.limitRecords)}`}` : "")),
          div({ class: "card" }, meter({ label: "Public assets", used: open?.assetBytes ?? 0, limit: open?.limitAssetBytes ?? 0, text: open ? `${bytes(open.assetBytes)} of ${bytes(open.limitAssetBytes)} · ${share(open.assetBytes, open.limitAssetBytes)}` : "nothing yet" })),
          div({ class: "card" }, meter({ label: "Transfer this month", used: transfer.bytes, limit: transfer.limitBytes, text: `${bytes(transfer.bytes)} of ${bytes(transfer.limitBytes)} · ${share(transfer.bytes, transfer.limitBytes)}` }),
            p({ class: "muted small" }, transfer.warning ?? `month ${String(transfer.month).replace(/(\d{4})(\d\d)/, "$1-$2")}, public data`))); },
        usageByDay(),
        usageByType(),
        () => pages.value.length > 1 ? div({ class: "block" }, h2("Largest databases"), barChart({ label: "Bytes by database", bars: [...pages.value].sort((one, other) => other.bytes - one.bytes).slice(0, 8).map((one) => ({ label: nameOf(one), value: one.bytes, text: bytes(one.bytes) })) })) : null,
        div({ class: "block" }, div({ class: "block-head" }, h2("By database")),
          () => pages.value.length === 0 ? empty({ icon: "usage", title: "No data yet", text: "A database appears with its first record." }) : table({
            caption: "Usage by database", key: (row) => `${row.scope} ${row.userRecordName ?? row.user ?? ""}`, rows: () => pages.value,
            columns: () => [
              { label: "Database", cell: (row) => [strong(nameOf(row)), " ", row.scope === "public" ? null : badge("private")] },
              { label: "Records", class: "number", cell: (row) => count(row.records) },
              { label: "Data", class: "number", cell: (row) => bytes(row.bytes) },
              { label: "of its limit", class: "number", cell: (row) => share(row.bytes, row.limitBytes) || "–" },
              { label: "Assets", class: "number", cell: (row) => bytes(row.assetBytes) },
              { label: "", head: span({ class: "hidden-text" }, "Warning"), cell: (row) => (row.warning ? badge(row.warning, "warn") : a({ class: "link", href: address({ screen: "zones", params: row.scope === "public" ? {} : { user: row.user ?? "" } }) }, "Zones")) },
            ],
          }),
          div({ class: "table-foot" }, () => (next.value ? button({ label: "Load more", onclick: more }) : null))),
      ],
    }));
}
