/** Logs: what was asked for and what became of it, over all nodes; as history and live. */
import { computed, effect, onCleanup, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { addressOf, call, signInAgain } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, place, setParams } from "../core/router.js";
import { session } from "../core/session.js";
import { useKeys } from "../core/keys.js";
import { bytes, count, milliseconds, plural, rate as rateText, time } from "../core/format.js";
import { badge, button, checkbox, copyable, empty, errorBox, facts, screenHead, select, view } from "../elements/parts.js";
import { table } from "../elements/table.js";
import { icon } from "../elements/icon.js";
import { missingNodes, refusalBox } from "../elements/requests.js";

const { a, aside, code, div, h2, h3, header, input, label, li, ol, p, section, span, strong } = html;

/** The newest rows that are kept while the log is followed. */
const liveMax = 2000;
/** What comes within this time is drawn at once, however many messages it comes in. */
const batchMilliseconds = 250;

const operations = [
  { value: "", label: "All" },
  { group: "Records", options: ["records", "records/modify", "records/query", "records/lookup"] },
  { group: "Other data", options: ["changes", "zones", "users", "subscriptions", "assets", "kv", "push", "sign-in"] },
  { group: "Administration", options: ["admin"] },
];

/** @param {Record<string, string>} params the filters, as the server takes them */
const queryOf = ({ op, db, type, zone, user, code: errorCode, failed, slow, admin, all }) => ({
  container: all ? undefined : place.value.container, environment: all ? undefined : place.value.environment,
  operation: op, database: db, recordType: type, zone, user, code: errorCode, failed: failed ? true : undefined,
  milliseconds: /^\d+$/.test(slow ?? "") ? slow : undefined, clients: admin || op === "admin" ? undefined : true,
});

export function logsScreen() {
  const params = computed(() => place.value.params);
  const isLive = computed(() => params.value.view === "live");
  const isPaneOpen = computed(() => Boolean(params.value.request));
  // Which request is open is no matter of the list.
  const question = computed(() => JSON.stringify(queryOf(params.value)));
  useKeys([{ key: "/", label: "Filter by record type", run: () => document.querySelector("[data-first-filter]")?.focus() }]);
  return div({ class: () => ["with-pane", isPaneOpen.value && "pane-open"] },
    section({ class: "pane-main" },
      screenHead({ title: "Logs", detail: "What was asked for and what became of it, on all nodes. Nothing of what records hold.", actions: [
        div({ class: "segmented", role: "group", "aria-label": "View" }, [["", "History"], ["live", "Live"]].map(([value, words]) =>
          html.button({ type: "button", "aria-pressed": () => String((params.value.view ?? "") === value), onclick: () => setParams({ view: value, request: null }) }, words))),
      ] }),
      filters(params),
      () => (isLive.value ? live(question) : history(question))),
    () => {
      const id = params.value.request;
      return id ? requestPane(id) : null;
    });
}

/** @param {import("../core/signal.js").Signal<Record<string, string>>} params */
function filters(params) {
  const text = (name, words, rest = {}) => label({ class: "inline" }, span(words), input({ ...rest, value: () => params.value[name] ?? "", autocomplete: "off", spellcheck: "false", onchange: (event) => setParams({ [name]: event.target.value.trim() }) }));
  return div({ class: "toolbar log-filters", role: "group", "aria-label": "Filters" },
    label({ class: "inline" }, span("Operation"), select({ value: () => params.value.op ?? "", options: operations, onchange: (next) => setParams({ op: next }) })),
    label({ class: "inline" }, span("Outcome"), select({ value: () => params.value.code ?? (params.value.failed ? "failed" : ""), options: [
      { value: "", label: "All" }, { value: "failed", label: "Failed" }, { group: "Error", options: ["THROTTLED", "QUOTA_EXCEEDED", "ACCESS_DENIED", "AUTHENTICATION_FAILED", "AUTHENTICATION_REQUIRED", "BAD_REQUEST", "NOT_FOUND", "ZONE_NOT_FOUND", "CONFLICT", "EXISTS", "ATOMIC_ERROR", "TRY_AGAIN_LATER", "INTERNAL_ERROR"] }],
      onchange: (next) => setParams({ failed: next === "failed" ? "1" : null, code: next === "failed" ? null : next }) })),
    label({ class: "inline" }, span("Database"), select({ value: () => params.value.db ?? "", options: [{ value: "", label: "All" }, { value: "public", label: "Public" }, { value: "private", label: "Private" }], onchange: (next) => setParams({ db: next }) })),
    text("type", "Type", { "data-first-filter": "" }), text("user", "User", { placeholder: "_…" }), text("slow", "Slower than", { inputmode: "numeric", placeholder: "ms", class: "number brief" }),
    checkbox({ label: "Administration", checked: () => Boolean(params.value.admin), onchange: (isOn) => setParams({ admin: isOn ? "1" : null }) }),
    () => (session.value?.containers ? null : checkbox({ label: "All containers", checked: () => Boolean(params.value.all), onchange: (isOn) => setParams({ all: isOn ? "1" : null }) })),
    label({ class: "inline" }, span("Request"), input({ value: () => params.value.request ?? "", placeholder: "id", autocomplete: "off", spellcheck: "false", class: "mono", onchange: (event) => setParams({ request: event.target.value.trim() }) })));
}

/** @param {import("../core/signal.js").Signal<string>} question */
function history(question) {
  const pages = signal([]);
  const next = signal(undefined);
  const moreError = signal(null);
  const first = resource((abort) => call("GET /admin/1/requests", { query: { ...JSON.parse(question.value), limit: 100 }, signal: abort }));
  effect(() => {
    pages.value = first.data.value?.requests ?? [];
    next.value = first.data.value?.next;
    moreError.value = null;
  });
  /** The next page; nothing is taken where another list was asked for meanwhile. */
  const more = async () => {
    if (first.isLoading.peek()) return;
    const asked = first.data.peek();
    try {
      const page = await call("GET /admin/1/requests", { query: { ...JSON.parse(question.peek()), limit: 100, after: next.peek() } });
      if (asked !== first.data.peek()) return;
      pages.value = [...pages.peek(), ...page.requests];
      next.value = page.next;
      moreError.value = null;
    } catch (error) {
      if (asked === first.data.peek()) moreError.value = asRequestError(error);
    }
  };
  return view(first, {
    rows: 10,
    show: ({ nodes }) => [
      missingNodes(nodes, "their requests are not in this list"),
      () => pages.value.length === 0 ? empty({ icon: "log", title: "No request", text: "Nodes keep their newest requests in memory. None of them matches, or none came yet.",
        action: Object.keys(place.value.params).length ? button({ label: "Clear filters", onclick: () => setParams(Object.fromEntries(Object.keys(place.peek().params).map((name) => [name, null]))) }) : null })
        : div({ class: "results" }, requestTable(() => pages.value),
          div({ class: "table-foot", role: "status" }, () => `${plural(pages.value.length, "request")} shown${next.value ? "" : ", these are all that the nodes have"}`,
            () => (moreError.value ? errorBox(moreError.value, { retry: more }) : next.value ? button({ label: "Load more", onclick: more }) : null),
            button({ label: "Refresh", icon: "refresh", kind: "plain", onclick: first.reload }))),
    ],
  });
}

/** @param {import("../core/signal.js").Signal<string>} question */
function live(question) {
  const rows = signal([]);
  const waiting = signal([]);
  const nodes = signal([]);
  const isPaused = signal(false);
  const state = signal(/** @type {"opening" | "open" | "broken"} */ ("opening"));
  const error = signal(null);
  const rate = signal(0);
  const skipped = signal(0);
  let arrived = [];
  /** What is to be drawn next, the newest first. */
  let pending = [];
  let drawing = 0;
  const draw = () => {
    drawing = 0;
    const to = isPaused.peek() ? waiting : rows;
    to.value = newest([...pending, ...to.peek()]);
    pending = [];
  };
  onCleanup(() => clearTimeout(drawing));
  const turn = signal(0);
  const newest = (list) => list.slice(0, liveMax);
  effect(() => {
    void turn.value;
    const source = new EventSource(addressOf("GET /admin/1/requests/watch", { query: JSON.parse(question.value) }));
    source.onopen = () => { state.value = "open"; error.value = null; };
    source.addEventListener("requests", (event) => {
      const found = JSON.parse(event.data);
      const now = Date.now();
      arrived = [...arrived.filter((one) => one.at > now - 5000), { at: now, count: found.requests.length + found.skipped }];
      rate.value = arrived.reduce((sum, one) => sum + one.count, 0) / 5;
      skipped.value += found.skipped;
      pending = newest([...found.requests.reverse(), ...pending]);
      drawing ||= setTimeout(draw, batchMilliseconds);
    });
    source.addEventListener("nodes", (event) => (nodes.value = JSON.parse(event.data).nodes));
    source.addEventListener("end", (event) => {
      const why = JSON.parse(event.data);
      source.close();
      void again(why.serverErrorCode === "AUTHENTICATION_FAILED", why);
    });
    source.onerror = () => {
      state.value = "broken";
      // The browser comes again by itself, unless the server refused.
      if (source.readyState === EventSource.CLOSED) void again(true, null);
    };
    onCleanup(() => source.close());
  });
  const idle = setInterval(() => {
    arrived = arrived.filter((one) => one.at > Date.now() - 5000);
    rate.value = arrived.reduce((sum, one) => sum + one.count, 0) / 5;
  }, 1000);
  onCleanup(() => clearInterval(idle));
  async function again(mayBeSignedOut, why) {
    state.value = "broken";
    try {
      // Says why, and has somebody sign in where that is it.
      if (mayBeSignedOut) await call("GET /admin/1/console/me");
      turn.value += 1;
    } catch (failure) {
      error.value = asRequestError(failure);
      if (why?.reason && error.value.needsSignIn) await signInAgain.ask(false).then(() => (turn.value += 1), () => {});
    }
  }
  const pause = () => {
    isPaused.value = !isPaused.peek();
    if (isPaused.peek()) return;
    rows.value = newest([...waiting.peek(), ...rows.peek()]);
    waiting.value = [];
  };
  useKeys([{ key: "p", label: "Pause or go on", run: pause }]);
  const hasRows = computed(() => rows.value.length > 0);
  return div({ class: "view" },
    div({ class: "live-bar" },
      span({ class: () => ["live-state", isPaused.value ? "paused" : state.value], role: "status" }, span({ class: "live-dot", "aria-hidden": "true" }),
        () => (state.value === "broken" ? "Connecting again…" : isPaused.value ? `Paused, ${count(waiting.value.length)} new` : state.value === "open" ? "Live" : "Connecting…")),
      span({ class: "muted" }, () => `${rateText(rate.value)} a second`),
      () => (skipped.value ? span({ class: "muted" }, `${count(skipped.value)} left out: there were too many at once`) : null),
      div({ class: "toolbar-end" },
        button({ label: () => (isPaused.value ? "Go on" : "Pause"), icon: "pause", keys: "p", onclick: pause }),
        button({ label: "Clear", kind: "plain", onclick: () => { pending = rows.value = []; skipped.value = 0; } }))),
    () => (error.value ? errorBox(error.value, { retry: () => (turn.value += 1) }) : null),
    () => missingNodes(nodes.value, "their requests are not shown"),
    () => (hasRows.value ? div({ class: "results" }, requestTable(() => rows.value), div({ class: "table-foot" }, () => `${plural(rows.value.length, "request")} shown, the newest first`))
      : empty({ icon: "log", title: "Nothing yet", text: "Requests appear here as they are answered, from all nodes." })));
}

/** @param {any} row */
const outcome = (row) => {
  const failure = row.code ?? row.itemCode;
  const words = row.failedItems ? `${row.failedItems} failed` : null;
  const tone = row.status >= 500 ? "bad" : row.status >= 400 ? "warn" : row.failedItems ? "warn" : "good";
  return [badge(row.status, tone), failure ? code({ class: "small log-code" }, ` ${failure}`) : null, words ? span({ class: "muted small" }, ` ${words}`) : null];
};

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** @param {number} milliseconds */
const shortTime = (milliseconds) => [new Date(milliseconds).toDateString() === new Date().toDateString() ? null : `${day.format(milliseconds)} `, clock.format(milliseconds)];

/** @param {() => any[]} rows */
function requestTable(rows) {
  const all = computed(() => Boolean(place.value.params.all));
  return table({
    caption: "Requests", class: "log-table", isWindowed: true, key: (row) => row.id, rows, current: () => place.value.params.request ?? null,
    href: (row) => address({ params: { ...place.peek().params, request: row.id } }),
    columns: () => [
      { label: "Time", cell: (row) => span({ class: "mono", title: time(row.time) }, shortTime(row.time)) },
      { label: "Operation", cell: (row) => strong(row.operation) },
      ...(all.value ? [{ label: "Container", cell: (row) => row.container ?? span({ class: "unset" }, "–") }] : []),
      { label: "Outcome", cell: outcome },
      { label: "Took", class: "number", cell: (row) => span({ class: row.milliseconds > 1000 ? "warn-text" : "" }, milliseconds(row.milliseconds)) },
      { label: "Database", cell: (row) => row.database ?? "" },
      { label: "Zone", cell: (row) => (row.zone === "_defaultZone" ? span({ class: "muted" }, "default") : (row.zone ?? "")) },
      { label: "Type", cell: (row) => row.recordType ?? "" },
      { label: "User", cell: (row) => (row.user ? code({ title: row.user, class: "muted" }, `${row.user.slice(0, 9)}…`) : "") },
      { label: "Records", class: "number", cell: (row) => (row.records ? count(row.records) : "") },
      { label: "In, out", class: "number", cell: (row) => span({ class: "muted" }, `${bytes(row.bytesIn)}, ${bytes(row.bytesOut)}`) },
      { label: "Node", class: "number", cell: (row) => row.node },
      { label: "Client", cell: (row) => span({ class: "muted" }, row.address ?? row.credential ?? "") },
    ],
  });
}

/** One request beside the list. @param {string} id */
function requestPane(id) {
  const close = () => setParams({ request: null });
  const found = resource((abort) => call("GET /admin/1/requests/trace", { query: { id }, signal: abort }));
  useKeys([{ key: "Escape", label: "Close the request", run: close }]);
  return aside({ class: "pane", "aria-label": "Request" },
    header({ class: "pane-head" }, div({ class: "pane-title" }, h2(() => found.data.value?.request.operation ?? "Request"), copyable(id)),
      button({ label: "Close", icon: "close", kind: "plain", hides: true, onclick: close })),
    div({ class: "pane-body" },
      view(found, { error: (error) => errorBox(error, { title: "Not found", retry: found.reload }), show: ({ request, hops, nodes }) => [
        div({ class: "log-outcome" }, outcome(request), span({ class: "muted" }, milliseconds(request.milliseconds))),
        request.refusal ? refusalBox(request) : null,
        missingNodes(nodes, "what they did for it is not known"),
        facts([["Time", time(request.time)], ["Container", request.container ? [request.container, " ", request.environment ? badge(request.environment) : null] : null], ["Database", request.database], ["Zone", request.zone], ["Record type", request.recordType],
          ["User", request.user ? copyable(request.user) : null], ["By", request.credential ? code(request.credential) : null], ["Address", request.address],
          ["Records", request.records ? count(request.records) : null], ["Sent", bytes(request.bytesIn)], ["Answered", bytes(request.bytesOut)]]),
        h3({ class: "way-head" }, "Its way through the nodes"),
        ol({ class: "way" },
          li(span({ class: "way-node" }, `Node ${request.node}`), span("took it from the client and answered"), span({ class: "muted number" }, milliseconds(request.milliseconds))),
          hops.map((hop) => li({ class: hop.done ? "" : "way-failed" }, span({ class: "way-node" }, `Node ${hop.node}`),
            span(`${hop.done ? (hop.work === "write" ? "wrote it" : "read it") : "did not do it"}, for node ${hop.from}, ${hop.group ? `in group ${hop.group}` : "in the directory"}`), span({ class: "muted number" }, milliseconds(hop.milliseconds)))),
          hops.length === 0 ? li({ class: "muted" }, request.askedNodes?.length ? span(`It asked ${plural(request.askedNodes.length, "other node")}; they do not remember it any more.`) : span("No other node was asked: this one leads what it was about, or it was refused before.")) : null),
        p({ class: "muted small" }, "Where a leader writes, a majority of the shard’s nodes wrote it too."),
        request.container && request.recordType && request.operation.startsWith("records/") ? a({ class: "link", href: address({ container: request.container, environment: request.environment, screen: "records", params: { type: request.recordType } }) }, `Records of ${request.recordType}`) : null,
      ] })));
}
