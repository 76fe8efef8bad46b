/** Audit: who did what, the newest first. */
import { computed, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, place, setParams } from "../core/router.js";
import { useKeys } from "../core/keys.js";
import { count, plural, time } from "../core/format.js";
import { badge, button, copyable, empty, errorBox, screenHead, view } from "../elements/parts.js";
import { table } from "../elements/table.js";

const { a, div, input, nav, section, span } = html;
const pageSize = 200;

/** @param {string} log @param {number} after @param {number} limit @param {AbortSignal} [abort] */
const page = (log, after, limit, abort) => call("GET /admin/1/audit", { query: { log, after, limit }, signal: abort });

/**
 * The number of the last record: pages begin with the oldest, so it is searched for.
 * @param {string} log
 * @param {AbortSignal} abort
 */
async function lastSequence(log, abort) {
  const first = await page(log, 0, 1, abort);
  if (first.records.length === 0) return 0;
  let [low, high] = [first.records[0].sequence, first.records[0].sequence + 1];
  const isThere = async (sequence) => (await page(log, sequence - 1, 1, abort)).records.length > 0;
  while (await isThere(high)) [low, high] = [high, high + (high - low) * 8];
  while (high - low > pageSize / 2) {
    const middle = Math.floor((low + high) / 2);
    if (await isThere(middle)) low = middle;
    else high = middle;
  }
  const { records } = await page(log, low - 1, pageSize, abort);
  return records[records.length - 1].sequence;
}

export function auditScreen() {
  const log = computed(() => (place.value.params.log === "requests" ? "requests" : "changes"));
  const filter = computed(() => (place.value.params.q ?? "").toLowerCase());
  const rows = signal([]);
  const oldest = signal(0);
  const error = signal(null);
  const before = async (name, end, abort) => {
    const { records, firstSequence } = await page(name, Math.max(0, end - pageSize - 1), pageSize, abort);
    return { records: records.filter((record) => record.sequence < end).reverse(), first: firstSequence };
  };
  const loaded = resource((abort) => {
    const name = log.value;
    return lastSequence(name, abort).then((last) => before(name, last + 1, abort)).then(({ records }) => {
      rows.value = records;
      oldest.value = records.at(-1)?.sequence ?? 0;
      return records;
    });
  });
  const more = async () => {
    try {
      const { records } = await before(log.peek(), oldest.peek(), undefined);
      rows.value = [...rows.peek(), ...records];
      oldest.value = records.at(-1)?.sequence ?? 0;
      error.value = null;
    } catch (failure) {
      error.value = asRequestError(failure);
    }
  };
  const found = computed(() => rows.value.filter((row) => !filter.value || [row.actor, row.action, row.subject, row.outcome, row.address, row.requestID].some((text) => text.toLowerCase().includes(filter.value))));
  // Each record has the hash of the one before it.
  const chain = computed(() => rows.value.every((row, index) => index === 0 || rows.value[index - 1].previousHash === row.hash));
  useKeys([{ key: "/", label: "Filter", run: () => document.querySelector("#audit-filter")?.focus() }, { key: "r", label: "Load again", run: loaded.reload }]);
  return section(
    screenHead({ title: "Audit", detail: "Every change by an administrator, every sign-in, every refusal. Records form a chain of hashes.", actions: [button({ label: "Refresh", icon: "refresh", onclick: loaded.reload })] }),
    nav({ class: "tabs", "aria-label": "Logs" }, [["changes", "Changes and sign-ins"], ["requests", "Refusals"]].map(([name, label]) => a({ href: address({ params: { log: name } }), "aria-current": () => (log.value === name ? "page" : null) }, label))),
    div({ class: "toolbar" }, input({ id: "audit-filter", type: "search", class: "search", "aria-label": "Filter what is loaded", placeholder: "Actor, action, subject, address…", value: place.peek().params.q ?? "", oninput: (event) => setParams({ q: event.target.value }, { replace: true }) }),
      () => rows.value.length ? div({ class: "toolbar-end" }, chain.value ? badge("chain intact", "good") : badge("chain broken", "bad")) : null),
    view(loaded, {
      rows: 12, isEmpty: (records) => records.length === 0, empty: () => empty({ icon: "audit", title: "Nothing here yet", text: log.peek() === "requests" ? "Refused requests and failed sign-ins appear here." : "" }),
      show: () => [
        table({ caption: "Audit", isWrapped: true, key: (row) => row.sequence, rows: () => found.value, columns: () => [
          { label: "Time", class: "nowrap", cell: (row) => span({ class: "muted", title: `record ${row.sequence}` }, time(row.time)) },
          { label: "Actor", class: "nowrap", cell: (row) => row.actor },
          { label: "Action", class: "nowrap", cell: (row) => badge(row.action) },
          { label: "Subject", cell: (row) => [row.subject, row.count > 1 ? span({ class: "muted" }, ` × ${count(row.count)}`) : null] },
          { label: "Outcome", class: "nowrap", cell: (row) => badge(row.outcome, row.outcome === "done" ? "good" : "warn") },
          { label: "Address", class: "nowrap", cell: (row) => span({ class: "muted" }, row.address) },
          { label: "Request", class: "nowrap", cell: (row) => copyable(row.requestID, `${row.requestID.slice(0, 8)}…`) },
        ] }),
        div({ class: "table-foot", role: "status" }, () => `${filter.value ? `${count(found.value.length)} of ` : ""}${plural(rows.value.length, "record")} loaded`, () => (error.value ? errorBox(error.value, { retry: more }) : null), () => (oldest.value > 1 ? button({ label: "Load older", onclick: more }) : null)),
      ],
    }));
}
