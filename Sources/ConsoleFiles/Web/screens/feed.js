/** Change feed: what became of a user's zones, or of the records of one, since a token; page by page, or live. */
import { computed, effect, onCleanup, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, listZones } from "../core/api.js";
import { acting } from "../core/acting.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, place, setParams } from "../core/router.js";
import { useKeys } from "../core/keys.js";
import { cut, plural, shellWord, time } from "../core/format.js";
import { badge, button, copyable, empty, errorBox, screenHead, select, toast, view } from "../elements/parts.js";
import { needsActing } from "../elements/actas.js";
import { table } from "../elements/table.js";
import { summary } from "../elements/values.js";

const { a, code, div, input, label, p, section, span, strong } = html;
const [zoneFeed, databaseFeed] = [
  "POST /database/1/{container}/{environment}/{database}/records/changes",
  "POST /database/1/{container}/{environment}/{database}/zones/changes",
];
const pageSize = 100;
/** The newest changes that are kept while a feed is followed. */
const keptMax = 2000;
const followMilliseconds = 2000;

const who = computed(() => acting.value?.id ?? "");

export function feedScreen() {
  return section(
    screenHead({ title: "Change Feed", detail: "What became of a user’s zones, or of the records of one, since a token: as their devices read it. Public data and default zones have no feed." }),
    // Drawn again for another user only.
    () => (who.value ? feed() : needsActing("Change feeds")));
}

/**
 * A page of the feed of a zone, or of the database where there is none.
 * @param {string} zone @param {string} syncToken @param {AbortSignal} [abort]
 * @returns {Promise<{zone: string, since: string, changes: any[], syncToken: string, moreComing: boolean}>}
 */
async function read(zone, syncToken, abort) {
  const body = { resultsLimit: pageSize, ...(syncToken ? { syncToken } : {}), ...(zone ? { zoneID: { zoneName: zone }, numbersAsStrings: true } : {}) };
  const page = await call(zone ? zoneFeed : databaseFeed, { place: own(), body, signal: abort });
  return { zone, since: syncToken, changes: page.records ?? page.zones, syncToken: page.syncToken, moreComing: page.moreComing };
}

const own = () => ({ ...place.peek(), database: "private" });

function feed() {
  const zone = computed(() => place.value.params.zone ?? "");
  const since = computed(() => place.value.params.since ?? "");
  const isLive = computed(() => place.value.params.view === "live");
  const zones = resource((abort) => call(listZones, { place: own(), body: {}, signal: abort }).then((answer) =>
    answer.zones.map(({ zoneID }) => zoneID.zoneName).filter((name) => name !== "_defaultZone")));
  /**
   * What was read, and of which feed: until the first page of another one has come, this is still the earlier feed.
   * `rows` are in the feed's order, the same record or zone once for each time that it was told of.
   */
  const got = signal({ zone: "", since: "", rows: [], token: "", moreComing: false });
  let total = 0;
  const take = (page, isFirst) => {
    if (isFirst) total = 0;
    const { zone, since, changes, syncToken: token, moreComing } = page;
    const added = changes.map((change) => ({ number: (total += 1), change }));
    got.value = { zone, since: isFirst ? since : got.peek().since, rows: (isFirst ? added : [...got.peek().rows, ...added]).slice(-keptMax), token, moreComing };
    return page;
  };
  const first = resource((abort) => read(zone.value, since.value, abort).then((page) => (abort.aborted ? page : take(page, true))));
  /** The next page; nothing is taken where another feed was chosen meanwhile. @param {AbortSignal} [abort] */
  const next = async (abort) => {
    const asked = first.data.peek();
    const page = await read(got.peek().zone, got.peek().token, abort);
    if (!abort?.aborted && asked === first.data.peek()) take(page, false);
  };
  const error = signal(null);
  const more = async () => {
    try {
      await next();
      error.value = null;
    } catch (failure) {
      error.value = asRequestError(failure);
    }
  };
  const state = signal(/** @type {"opening" | "open" | "broken"} */ ("opening"));
  const turn = signal(0);
  effect(() => {
    void turn.value;
    if (!isLive.value || first.isLoading.value) return;
    if (first.error.value || !first.data.value) {
      state.value = "broken";
      return;
    }
    const abort = new AbortController();
    onCleanup(() => abort.abort());
    void follow(next, () => got.peek().moreComing, state, error, abort.signal);
  });
  const toggle = () => setParams({ view: isLive.peek() ? null : "live" }, { replace: true });
  useKeys([{ key: "/", label: "Choose a zone", run: () => document.querySelector("#feed-zone")?.focus() }, { key: "f", label: "Follow, or stop that", run: toggle },
    { key: "r", label: "Load again", run: first.reload }]);
  const shown = computed(() => (isLive.value ? [...got.value.rows].reverse() : got.value.rows));
  const hasRows = computed(() => got.value.rows.length > 0);
  const shownZone = computed(() => got.value.zone);
  return [
    div({ class: "toolbar" },
      label({ class: "inline" }, span("Feed of"), select({ id: "feed-zone", value: () => zone.value, onchange: (name) => setParams({ zone: name, since: null }),
        options: () => [{ value: "", label: "All zones" }, ...[...new Set([...(zones.data.value ?? []), zone.value])].filter(Boolean).map((name) => ({ value: name, label: `Zone ${name}` }))] })),
      label({ class: "inline" }, span("Since token"), input({ value: () => since.value, placeholder: "the beginning", autocomplete: "off", spellcheck: "false", class: "mono", onchange: (event) => setParams({ since: event.target.value.trim() }) })),
      div({ class: "toolbar-end" },
        button({ label: () => (isLive.value ? "Stop following" : "Follow"), icon: "feed", keys: "f", onclick: toggle }),
        button({ label: "Refresh", icon: "refresh", onclick: first.reload }))),
    () => (isLive.value ? div({ class: "live-bar" }, span({ class: () => ["live-state", state.value], role: "status" }, span({ class: "live-dot", "aria-hidden": "true" }),
      () => (state.value === "broken" ? "Stopped" : state.value === "open" ? "Live" : "Reading up to now…")), span({ class: "muted" }, `Asked for every ${followMilliseconds / 1000} seconds, the newest first`)) : null),
    () => (error.value ? failure(error.value, () => { error.value = null; if (isLive.peek()) turn.value += 1; else void more(); }) : null),
    view(first, {
      error: (found) => failure(found, first.reload),
      show: () => [
        () => (hasRows.value ? (shownZone.value ? recordTable(shown, shownZone.value) : zoneTable(shown)) : empty({ icon: "feed", title: got.value.since ? "Nothing changed since this token" : "Nothing happened here yet",
          text: isLive.value ? "Changes appear here within seconds." : shownZone.value ? "Records that are saved or deleted in this zone appear here." : "Zones appear here with their first record." })),
        div({ class: "table-foot" }, span({ role: "status" }, () => (hasRows.value ? `${plural(got.value.rows.length, "change")} shown${got.value.moreComing ? "" : ", these are all up to now"}` : "")),
          () => (got.value.moreComing && !isLive.value ? button({ label: "Load more", onclick: more }) : null)),
        () => onward(got.value),
      ],
    }),
  ];
}

/** Reads page after page, and then again every few seconds, until `abort` or an error. */
async function follow(next, isMoreComing, state, error, abort) {
  state.value = isMoreComing() ? "opening" : "open";
  while (!abort.aborted) {
    try {
      if (document.visibilityState === "visible") await next(abort);
    } catch (failure) {
      if (abort.aborted) return;
      state.value = "broken";
      error.value = asRequestError(failure);
      return;
    }
    if (isMoreComing()) continue;
    state.value = "open";
    await new Promise((done) => setTimeout(done, followMilliseconds));
  }
}

/** What the server says; where a token cannot be followed, what that means. @param {import("../core/api.js").RequestError} error @param {() => void} retry */
const failure = (error, retry) => (error.body?.detail === "expiredSyncToken"
  ? errorBox(error, { title: "This token cannot be followed", actions: [
    p({ class: "small" }, "A device that has it gets the error changeTokenExpired: it forgets what it knows of this feed, and reads from the beginning."),
    button({ label: "From the beginning", icon: "reset", onclick: () => setParams({ since: null }) })] })
  : errorBox(error, { retry }));

/** The token that the last page ended with, and how a terminal goes on from it. @param {{zone: string, token: string}} page */
function onward({ zone, token }) {
  const { container, environment } = place.peek();
  const command = `zonekeeper ${zone ? `record changes --zone ${shellWord(zone)}` : "zone changes"} --container ${container} --environment ${environment} --token ${shellWord(token)}`;
  return p({ class: "hint" }, "Goes on after ", copyable(token, cut(token, 24)), " ",
    button({ label: "Start here", kind: "plain", title: "Show what changes from now on", onclick: () => setParams({ zone, since: token }) }),
    button({ label: "Copy as command", kind: "plain", onclick: async () => {
      await navigator.clipboard.writeText(command);
      toast("Copied. It reads as the user whose session is given");
    } }));
}

const change = { label: "Change", cell: (row) => (row.change.deleted ? badge("deleted", "warn") : badge("saved", "good")) };

/** @param {import("../core/signal.js").Signal<any[]>} rows @param {string} zone */
const recordTable = (rows, zone) => table({
  caption: `Changes of ${zone}`, key: (row) => row.number, rows: () => rows.value, isWindowed: true,
  columns: () => [
    change,
    { label: "Record", cell: ({ change: record }) => (record.deleted ? code(record.recordName) : a({ class: "link", href: address({ screen: "records", params: { db: "private", zone, type: record.recordType, record: record.recordName } }) }, code(record.recordName))) },
    { label: "Record Type", cell: ({ change: { recordType } }) => (recordType ? strong(recordType) : span({ class: "unset" }, "–")) },
    { label: "Modified", cell: ({ change: { modified } }) => (modified ? span({ class: "muted" }, time(modified.timestamp)) : "") },
    { label: "Change tag", cell: ({ change: { recordChangeTag } }) => code({ class: "muted" }, recordChangeTag ?? "") },
    { label: "Fields", cell: ({ change: record }) => (record.deleted ? "" : summary(record)) },
  ],
});

/** @param {import("../core/signal.js").Signal<any[]>} rows */
const zoneTable = (rows) => table({
  caption: "Changes of zones", key: (row) => row.number, rows: () => rows.value, isWindowed: true,
  columns: () => [
    { ...change, cell: (row) => (row.change.deleted ? change.cell(row) : badge("changed", "good")) },
    { label: "Zone", cell: ({ change: { zoneID, deleted } }) => (deleted ? code(zoneID.zoneName) : a({ class: "link", href: address({ params: { zone: zoneID.zoneName } }) }, code(zoneID.zoneName))) },
  ],
});
