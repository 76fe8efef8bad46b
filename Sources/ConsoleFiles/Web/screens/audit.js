/** Audit: who did what, the newest first. */
import { computed, onCleanup, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, place, setParams } from "../core/router.js";
import { session } from "../core/session.js";
import { useKeys } from "../core/keys.js";
import { count, plural, time } from "../core/format.js";
import { badge, button, copyable, empty, errorBox, screenHead, view } from "../elements/parts.js";
import { exportMenu } from "../elements/dialog.js";
import { table } from "../elements/table.js";

const { a, div, input, nav, section, span } = html;
const pageSize = 200;

export function auditScreen() {
  const log = computed(() => (place.value.params.log === "requests" ? "requests" : "changes"));
  const text = computed(() => place.value.params.q ?? "");
  const actor = computed(() => place.value.params.actor ?? "");
  const rows = signal([]);
  const cursor = signal(undefined);
  /** What the server looked at and computed the hashes of, in all pages together. */
  const examined = signal({ records: 0, first: 0, last: 0, firstBroken: undefined });
  const error = signal(null);
  let timer = 0;
  onCleanup(() => clearTimeout(timer));
  const question = () => ({ log: log.value, order: "newest", containing: text.value, actor: actor.value });
  const page = (before, signal) => call("GET /admin/1/audit", { signal, query: { ...question(), limit: pageSize, before } });
  const take = (answer, isFirst) => {
    rows.value = isFirst ? answer.records : [...rows.peek(), ...answer.records];
    cursor.value = answer.cursor;
    error.value = null;
    const [all, more] = [isFirst ? { records: 0, first: 0, last: 0 } : examined.peek(), answer.examined];
    examined.value = more.records === 0 ? all : { records: all.records + more.records, first: more.first, last: Math.max(all.last, more.last), firstBroken: more.firstBroken ?? all.firstBroken };
    return answer;
  };
  const loaded = resource((abort) => page(undefined, abort).then((answer) => (abort.aborted ? answer : take(answer, true))));
  /** The next page; nothing is taken where another list was asked for meanwhile. */
  const more = async () => {
    if (loaded.isLoading.peek()) return;
    const asked = loaded.data.peek();
    const isStill = () => asked === loaded.data.peek();
    try {
      const answer = await page(cursor.peek());
      if (isStill()) take(answer, false);
    } catch (failure) {
      if (isStill()) error.value = asRequestError(failure);
    }
  };
  useKeys([{ key: "/", label: "Search", run: () => document.querySelector("#audit-filter")?.focus() }, { key: "r", label: "Load again", run: loaded.reload }]);
  return section(
    screenHead({ title: "Audit", detail: seesAll() ? "Every change by an administrator, every sign-in, every refusal. Records form a chain of hashes." : "What you did yourself. An admin of the whole cluster sees everybody’s.", actions: [
      exportMenu(() => [["csv", "All that match as CSV"], ["lines", "All that match as JSON lines"]].map(([format, label]) => ({ label, operation: "GET /admin/1/audit/export", query: { ...question(), format } }))),
      button({ label: "Refresh", icon: "refresh", onclick: loaded.reload })] }),
    nav({ class: "tabs", "aria-label": "Logs" }, [["changes", "Changes and sign-ins"], ["requests", "Refusals"]].map(([name, label]) => a({ href: address({ params: { log: name } }), "aria-current": () => (log.value === name ? "page" : null) }, label))),
    div({ class: "toolbar" }, input({ id: "audit-filter", type: "search", class: "search", "aria-label": "Search the log", placeholder: "Actor, action, subject, address…", value: place.peek().params.q ?? "", oninput: ({ target }) => {
      clearTimeout(timer);
      timer = setTimeout(() => setParams({ q: target.value }, { replace: true }), 250);
    } }),
      () => (actor.value ? button({ label: actor.value, icon: "close", title: "Show everybody’s", onclick: () => setParams({ actor: null }) }) : null),
      () => (examined.value.records ? div({ class: "toolbar-end" }, chainBadge(examined.value)) : null)),
    view(loaded, {
      rows: 12, isEmpty: () => rows.value.length === 0 && cursor.value === undefined, empty: () => empty({ icon: "audit", title: text.peek() || actor.peek() ? "No record matches" : "Nothing here yet", text: text.peek() ? "The whole log was searched." : log.peek() === "requests" ? "Refused requests and failed sign-ins appear here." : "" }),
      show: () => [
        table({ caption: "Audit", class: "audit-table", isWrapped: true, key: (row) => row.sequence, rows: () => rows.value, columns: () => [
          { label: "Time", class: "nowrap", cell: (row) => span({ class: "muted", title: `record ${row.sequence}` }, time(row.time)) },
          { label: "Actor", class: "nowrap", cell: (row) => (seesAll() ? a({ class: "link", href: address({ params: { ...place.peek().params, actor: row.actor } }), title: `Only what ${row.actor} did` }, row.actor) : row.actor) },
          { label: "What", class: "grow", cell: (row) => [badge(row.action), " ", span({ class: "narrow-only small muted" }, time(row.time), ", ", row.actor),
            div(row.subject, row.count > 1 ? span({ class: "muted" }, ` × ${count(row.count)}`) : null), row.outcome === "done" ? null : div({ class: "small warn-words" }, row.outcome)] },
          { label: "Outcome", class: "nowrap", cell: (row) => badge(row.outcome.split(":")[0], row.outcome === "done" ? "good" : "warn") },
          { label: "Request", class: "nowrap", cell: (row) => [copyable(row.requestID, `${row.requestID.slice(0, 8)}…`), div({ class: "muted small" }, row.address ? `from ${row.address}` : "")] },
        ] }),
        div({ class: "table-foot", role: "status" }, () => (cursor.value === undefined ? `${plural(rows.value.length, "record")}, these are all` : `${plural(rows.value.length, "record")} found in the newest ${count(examined.value.records)}`), () => (error.value ? errorBox(error.value, { retry: more }) : null), () => (cursor.value !== undefined ? button({ label: text.value || actor.value ? "Search further back" : "Load older", onclick: more }) : null)),
      ],
    }));
}

/** Whether the person sees what others did. */
const seesAll = () => session.value?.role === "admin" && !session.value.containers;

/** Says which records were found to be right, no more. @param {{records: number, first: number, last: number, firstBroken?: number}} examined */
const chainBadge = ({ first, last, firstBroken }) => {
  const range = first === last ? `record ${first}` : `records ${first} to ${last}`;
  const how = "The node that answered computed their hashes, each of which covers the one before. `zonekeeper audit verify` computes the whole chain on your own machine.";
  return firstBroken
    ? span({ title: how }, badge(`record ${firstBroken} was changed, or one before it is gone`, "bad"))
    : span({ title: how }, badge(`${range}: chain intact`, "good"));
};
