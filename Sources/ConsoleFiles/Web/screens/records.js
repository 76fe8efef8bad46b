/** Records: a query that the schema and its indexes allow, its results as a table, and one record beside it. */
import { computed, effect, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, listZones, modifyRecords, queryRecords } from "../core/api.js";
import { acting } from "../core/acting.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, here, place, recordsHere, setParams } from "../core/router.js";
import { denial } from "../core/session.js";
import { schema, schemaState } from "../core/context.js";
import { draftAt, draftHome, draftKey } from "../core/recorddrafts.js";
import { useKeys } from "../core/keys.js";
import { count, plural } from "../core/format.js";
import { allFields, fieldLabel, hasIndex, indexNames, parseType, systemFields } from "../core/schema.js";
import { actionsColumn, announce, button, checkbox, empty, errorBox, screenHead, select, timeAgo, toast, whileSlow } from "../elements/parts.js";
import { menuButton, menuGroup, menuItem } from "../elements/dialog.js";
import { needsActing } from "../elements/actas.js";
import { table } from "../elements/table.js";
import { cell, isNumeric } from "../elements/values.js";
import { filterBar, readFilters, requestFilters } from "./recordfilters.js";
import { recordPane } from "./record.js";
import { countAll, deleteMatches, deleteSelected, exportMatches, importRecords } from "./recordbulk.js";
import { showAsCode } from "./recordcode.js";
import { savedQueries } from "./savedqueries.js";
import { findDeleted } from "./recordversions.js";

const { code, div, section, span, strong } = html;
const pageSize = 100;
/** A page may be empty although more follow; so many are asked for before the person is. */
const emptyPagesMax = 10;

export function recordsScreen() {
  const params = computed(() => place.value.params);
  const types = computed(() => (schema.value?.types ?? []).filter((type) => type.name !== "Users"));
  const type = computed(() => types.value.find((each) => each.name === params.value.type) ?? (params.value.type ? undefined : types.value[0]));
  const filterText = computed(() => params.value.f);
  const filters = computed(() => readFilters(filterText.value));
  const columns = computed(() => visibleColumns(type.value, params.value.cols));
  // What the question is, as text, so that it is asked again only where it changed.
  const question = computed(() => {
    if (!type.value) return "";
    const complete = requestFilters(type.value, filters.value);
    const sort = params.value.sort;
    const sortBy = sort ? [{ ...named(sort.replace(/^-/, "")), ascending: !sort.startsWith("-") }] : [];
    return JSON.stringify({
      query: { recordType: type.value.name, ...(complete.length ? { filterBy: complete } : {}), ...(sortBy.length ? { sortBy } : {}) },
      desiredKeys: columns.value.filter((name) => !systemFields.some((field) => field.label === name)),
      ...(params.value.explain ? { explain: true } : {}),
    });
  });
  const isPrivate = computed(() => params.value.db === "private");
  const isShut = computed(() => isPrivate.value && !acting.value);
  const at = computed(() => `${here.value} ${acting.value?.id ?? ""}`);
  const rows = signal([]);
  const marker = signal(undefined);
  const selected = signal(/** @type {Set<string | number>} */ (new Set()));
  const fetchPage = async (body, from, abort) => {
    const records = [];
    const { place: asked, zone } = recordsHere();
    let next = from;
    for (let turn = 0; turn < emptyPagesMax; turn += 1) {
      const answer = await call(queryRecords, {
        place: asked, signal: abort, body: { ...zone, ...body, resultsLimit: pageSize, numbersAsStrings: true, continuationMarker: next } });
      records.push(...answer.records);
      next = answer.continuationMarker;
      if (records.length > 0 || !next) return { records, next, explanation: answer.explanation };
    }
    return { records, next };
  };
  // A record that is saved meanwhile may come in a later page once more.
  let known = new Set();
  const first = resource((abort) => {
    void at.value;
    return question.value && !isShut.value ? fetchPage(JSON.parse(question.value), undefined, abort) : null;
  });
  // What is of one database, zone or user stands in no other, also as long as that is loaded.
  effect(() => {
    void at.value;
    first.data.value = undefined;
    first.error.value = null;
  });
  const moreError = signal(null);
  effect(() => {
    const data = first.data.value;
    rows.value = data?.records ?? [];
    known.clear();
    marker.value = data?.next;
    selected.value = new Set();
    moreError.value = null;
  });
  const unknown = (records) => {
    if (known.size < rows.peek().length) known = new Set(rows.peek().map((row) => row.recordName));
    const found = records.filter((row) => !known.has(row.recordName));
    found.forEach((row) => known.add(row.recordName));
    return found;
  };
  const isOld = signal(false);
  effect(() => void (isOld.value = first.isSlow.value));
  const isLoadingMore = signal(false);
  const more = async () => {
    if (isLoadingMore.peek() || !marker.peek() || first.isLoading.peek()) return;
    isLoadingMore.value = true;
    const asked = first.data.peek();
    const isStill = () => asked === first.data.peek();
    try {
      const page = await fetchPage(JSON.parse(question.peek()), marker.peek(), undefined);
      if (!isStill()) return;
      rows.value = rows.peek().concat(unknown(page.records));
      marker.value = page.next;
      moreError.value = null;
      announce(`${plural(rows.peek().length, "record")} shown`);
    } catch (error) {
      if (isStill()) moreError.value = asRequestError(error);
    } finally {
      isLoadingMore.value = false;
    }
  };
  const open = (name) => setParams({ record: name, new: null });
  const create = () => setParams({ new: "1", record: null });
  const mayWrite = () => denial(modifyRecords, { inEnvironment: true });
  useKeys([
    { key: "n", label: "New record", run: () => !mayWrite() && type.peek() && create() },
    { key: "/", label: "Add a filter", run: () => document.querySelector("[data-add-filter]")?.click() },
    { key: "r", label: "Run the query again", run: first.reload },
  ]);
  /** @type {{saved: (record: any, isNew: boolean) => void, deleted: (name: string) => void}} */
  const changes = {
    // A new record is in the list at once, wherever it would be sorted.
    saved: (record, isNew) => (rows.value = isNew ? [record, ...rows.peek()] : rows.peek().map((row) => (row.recordName === record.recordName ? record : row))),
    deleted: (name) => {
      rows.value = rows.peek().filter((row) => row.recordName !== name);
      selected.value = new Set([...selected.peek()].filter((each) => each !== name));
    },
  };
  const restored = (record, isNew) => {
    if (isNew && record.recordType === type.peek()?.name) changes.saved(record, true);
    void open(record.recordName);
  };
  // A new record waits until its type is known.
  const newType = computed(() => (params.value.new ? (type.value?.name ?? "") : ""));
  const isPaneOpen = computed(() => Boolean(params.value.record || params.value.new));
  // What is drawn as a whole follows these, so that a new row or column does not draw all anew.
  const hasRows = computed(() => rows.value.length > 0 && !first.error.value);
  const state = computed(() => (!schema.value ? "unknown" : types.value.length === 0 ? "empty" : isShut.value ? "shut" : "ready"));
  return div({ class: () => ["with-pane", isPaneOpen.value && "pane-open"] },
    section({ class: "pane-main", "aria-busy": () => (first.isLoading.value || schemaState.isLoading.value ? "true" : null) },
      screenHead({ title: "Records", detail: () => (isPrivate.value ? (acting.value ? `Private database of ${acting.value.user}` : "Private database") : "Public database"), actions: [
        () => selected.value.size > 0 ? button({ label: `Delete ${plural(selected.value.size, "record")}`, icon: "trash", kind: "danger", denied: mayWrite, onclick: () => deleteSelected([...selected.peek()].map(String), changes.deleted) }) : null,
        button({ label: "New Record", icon: "add", kind: "primary", denied: () => mayWrite() ?? (isShut.value ? "Act as a user first." : type.value ? null : "There is no record type yet."), onclick: create }),
      ] }),
      () => schemaState.error.value && !schema.value ? errorBox(schemaState.error.value, { retry: schemaState.reload }) : null,
      () => state.value === "unknown" ? whileSlow(schemaState) : state.value === "empty" ? noTypes() : state.value === "shut" ? [databaseChoice(), needsActing("Private records")] : [
        toolbar({ type, types, columns, first, question, mayWrite, params, restored }),
        () => (type.value ? filterBar({ type: type.value, filters: filters.value }) : unknownType(params.value.type)),
        () => (first.data.value?.explanation && params.value.explain ? explanation(first.data.value.explanation) : null),
        () => (first.error.value ? queryError(first) : null),
        () => (rows.value.length === 0 ? whileSlow(first, 10) : null),
        () => !first.error.value && first.data.value !== undefined && rows.value.length === 0 && !marker.value && !first.isLoading.value
          ? empty({ icon: "records", title: filters.value.length ? "No record matches" : `No ${type.value?.name ?? ""} yet`,
            text: filters.value.length ? "No record has all that the filters ask for." : "Records appear here as soon as an app saves one, or you do.",
            action: filters.value.length ? button({ label: "Clear filters", onclick: () => setParams({ f: null }) }) : button({ label: "New Record", icon: "add", denied: mayWrite, onclick: create }) })
          : null,
        () => (hasRows.value ? results() : null),
      ]),
    () => {
      // The record of the same name in another database or zone is another one.
      const [record, kind] = [paneName.value, newType.value, here.value];
      return (record || kind) && !isShut.value ? recordPane({ name: record || null, type: kind, changes, close: () => setParams({ record: null, new: null }) }) : null;
    });

  function rowTools(row) {
    return button({ label: `Delete ${row.recordName}`, icon: "trash", kind: "plain", hides: true, class: "row-tool", denied: mayWrite, onclick: () => deleteSelected([row.recordName], changes.deleted) });
  }

  // The next page is loaded when the end of the last one comes near.
  function scrolled({ target }) {
    if (!moreError.peek() && target.scrollTop > 0 && target.scrollTop + target.clientHeight > target.scrollHeight - 1500) void more();
  }

  function results() {
    return div({ class: () => ["results", isOld.value && "stale"], ref: (element) => element.addEventListener("scroll", scrolled, true) },
      table({
        caption: "Records", class: "records-table", isWindowed: true, selected, key: (row) => row.recordName,
        rows: () => rows.value, current: () => params.value.record ?? null,
        href: (row) => address({ params: { ...place.peek().params, record: row.recordName, new: "" } }),
        columns: () => type.value ? [...tableColumns(type.value, columns.value, params.value.sort), { ...actionsColumn, cell: rowTools }] : [],
      }),
      div({ class: "table-foot", role: "status" },
        () => `${plural(rows.value.length, "record")} shown${marker.value ? "" : ", these are all"}`,
        () => moreError.value ? errorBox(moreError.value, { retry: more }) : marker.value ? button({ label: "Load more", busy: () => isLoadingMore.value, onclick: more }) : null));
  }
}

// Which record is beside the table; apart from other parameters, so that those do not draw it anew.
const paneName = computed(() => place.value.params.record ?? "");

/** A field in a query: a system field has its own name there. @param {string} label */
export function named(label) {
  return systemFields.some((field) => field.query === label) ? { systemFieldName: label } : { fieldName: label };
}

/** @param {import("../core/schema.js").RecordType | undefined} type @param {string | undefined} chosen */
function visibleColumns(type, chosen) {
  if (!type) return [];
  const all = allFields(type).map((field) => fieldLabel(field.name));
  if (chosen) return chosen.split(",").filter((name) => all.includes(name));
  const own = type.fields.filter((field) => !field.system && parseType(field.type).base !== "BYTES").map((field) => field.name);
  // Those that can be asked for come first.
  const rank = (name) => -(type.fields.find((field) => field.name === name)?.indexes.length ?? 0);
  return [...own.sort((a, b) => rank(a) - rank(b)).slice(0, 7), "modifiedTimestamp"];
}

/** @param {import("../core/schema.js").RecordType} type @param {string[]} names @param {string | undefined} sort */
function tableColumns(type, names, sort) {
  const fields = allFields(type);
  const recordID = fields[0];
  const head = (label, text, isSortable) => {
    const direction = sort === label ? "ascending" : sort === `-${label}` ? "descending" : null;
    return { sort: direction, head: isSortable
      ? html.button({ type: "button", class: "sort-head", title: `Sort by ${text}`, onclick: () => setParams({ sort: direction === "ascending" ? `-${label}` : direction === "descending" ? null : label }) },
        text, span({ class: "sort-mark", "aria-hidden": "true" }, direction === "ascending" ? "↑" : direction === "descending" ? "↓" : "")) : text };
  };
  return [
    { label: "recordName", cell: (row) => [code(row.recordName), () => (draftAt(draftKey(draftHome(), row.recordName)) ? span({ class: "draft-dot", title: "Has edits that are not saved" }, span({ class: "hidden-text" }, " not saved")) : null)], class: "name", ...head("recordName", "recordName", hasIndex(recordID, "SORTABLE")) },
    ...names.filter((name) => name !== "recordName").map((name) => {
      const field = (fields.find((each) => fieldLabel(each.name) === name));
      const shown = systemFields.find((each) => each.label === name) ? systemCell(name) : (row) => cell(row.fields[name]);
      return { label: name, cell: shown, class: isNumeric(field.type) ? "number" : "", ...head(name, systemNames[name] ?? name, hasIndex(field, "SORTABLE")) };
    }),
  ];
}

/** @type {Record<string, string>} */
const systemNames = { createdTimestamp: "Created", modifiedTimestamp: "Modified", createdUserRecordName: "Created by", modifiedUserRecordName: "Modified by", recordChangeTag: "Change tag" };

/** @param {string} name */
const systemCell = (name) => (row) => {
  switch (name) {
    case "createdTimestamp": return span({ class: "muted" }, timeAgo(row.created.timestamp));
    case "modifiedTimestamp": return span({ class: "muted" }, timeAgo(row.modified.timestamp));
    case "createdUserRecordName": return code({ class: "muted" }, row.created.userRecordName);
    case "modifiedUserRecordName": return code({ class: "muted" }, row.modified.userRecordName);
    default: return code({ class: "muted" }, row.recordChangeTag);
  }
};

const databaseLabel = () =>
  html.label({ class: "inline" }, span("Database"), select({ value: () => (place.value.params.db === "private" ? "private" : "public"), title: "Private data is its user’s: act as that user to see it", options: [
    { value: "public", label: "Public" }, { value: "private", label: "Private" }, { value: "shared", label: "Shared", disabled: true }],
    onchange: (next) => setParams({ db: next === "private" ? "private" : null, zone: null, f: null, record: null, new: null }) }));

const databaseChoice = () => div({ class: "toolbar", role: "group", "aria-label": "Query" }, databaseLabel());

function zoneLabel() {
  const isOpen = computed(() => place.value.params.db === "private" && Boolean(acting.value));
  const zones = resource((abort) => isOpen.value ? call(listZones, { place: { ...place.peek(), database: "private" }, signal: abort, body: {} }).then((answer) => answer.zones.map((each) => each.zoneID.zoneName)) : null);
  const names = () => [...new Set(["_defaultZone", ...(zones.data.value ?? []), ...(place.value.params.zone ? [place.value.params.zone] : [])])];
  return html.label({ class: "inline" }, span("Zone"), select({ value: () => place.value.params.zone ?? "_defaultZone", options: names,
    onchange: (next) => setParams({ zone: next === "_defaultZone" ? null : next, record: null, new: null }) }));
}

/** @param {any} parts */
function toolbar({ type, types, columns, first, question, mayWrite, params, restored }) {
  const body = () => JSON.parse(question.peek());
  return div({ class: "toolbar", role: "group", "aria-label": "Query" },
    databaseLabel(), zoneLabel(),
    html.label({ class: "inline" }, span("Record Type"), select({ value: () => type.value?.name ?? "", options: () => types.value.map((each) => each.name),
      onchange: (name) => setParams({ type: name, f: null, sort: null, cols: null, record: null, new: null }) })),
    div({ class: "toolbar-end" },
      savedQueries(),
      menuButton({ label: "Columns", icon: "columns", kind: "plain", isPanel: true, chevron: false, items: () => columnChoice(type.peek(), columns) }),
      menuButton({ label: "More", icon: "more", kind: "plain", hides: true, items: () => [
        menuItem({ label: params.peek().explain ? "Hide how it ran" : "Explain the query", icon: "explain", onclick: () => setParams({ explain: params.peek().explain ? null : "1" }) }),
        menuItem({ label: "Copy as curl, command or Swift…", icon: "text", onclick: () => showAsCode(body()) }),
        menuItem({ label: "Find a deleted record…", icon: "search", onclick: () => findDeleted(restored) }),
        menuGroup("All matches"),
        menuItem({ label: "Count all matches", icon: "usage", onclick: () => countAll(body()) }),
        menuItem({ label: "Export as CSV", icon: "down", onclick: () => exportMatches(body(), "csv") }),
        menuItem({ label: "Export as JSON", icon: "down", onclick: () => exportMatches(body(), "json") }),
        menuItem({ label: "Delete all matches…", icon: "trash", danger: true, denied: mayWrite() ?? denial("POST /admin/1/jobs/delete", { inEnvironment: true }), onclick: () => deleteMatches(body(), first.reload) }),
        menuGroup("A file"),
        menuItem({ label: "Import a file…", icon: "deploy", denied: mayWrite(), onclick: () => importRecords(type.peek(), first.reload) }),
      ] }),
      button({ label: "Query Records", icon: "refresh", onclick: first.reload, busy: () => first.isSlow.value })));
}

/** @param {any} type @param {any} columns */
function columnChoice(type, columns) {
  const names = type ? allFields(type).slice(1).map((field) => fieldLabel(field.name)) : [];
  const own = names.filter((name) => !systemFields.some((field) => field.label === name));
  const tick = (name) => checkbox({ label: name, checked: columns.value.includes(name), onchange: (isOn) => {
    const next = names.filter((each) => (each === name ? isOn : columns.peek().includes(each)));
    void setParams({ cols: next.join(",") || "recordName" });
  } });
  return [own.map(tick), menuGroup("System fields"), names.filter((name) => !own.includes(name)).map(tick),
    button({ label: "Standard columns", kind: "plain", onclick: () => setParams({ cols: null }) })];
}

/** A refused query: where an index is missing, one click adds it. @param {any} first */
function queryError(first) {
  const error = first.error.value;
  const missing = error.body?.missingIndex;
  if (!missing) return errorBox(error, { title: "The query failed", retry: first.reload });
  const label = fieldLabel(missing.field);
  return errorBox(error, { title: `${label} has no index for this`, retry: first.reload, actions: [
    button({ label: `Add index: ${label} ${indexNames[missing.index]}`, kind: "primary", icon: "index",
      denied: () => denial("POST /admin/1/schema/indexes", { inEnvironment: true }),
      onclick: async () => {
        try {
          const { container, environment } = place.peek();
          await call("POST /admin/1/schema/indexes", { query: { container, environment }, body: missing });
          schemaState.reload();
          toast(`${label} is ${indexNames[missing.index]} now`);
          first.reload();
        } catch (failure) {
          toast(asRequestError(failure).message, "bad");
        }
      } }),
    html.a({ class: "button", href: address({ screen: "indexes", params: { type: missing.type } }) }, "See indexes"),
  ] });
}

/** @param {any} told */
const explanation = (told) =>
  section({ class: "explain", "aria-label": "How the query ran" },
    div(span({ class: "muted" }, "Driver"), strong(told.driver.replace(/___\w+/g, fieldLabel))),
    [["Entries examined", told.entriesExamined], ["Records read", told.recordsRead], ["Returned", told.recordsReturned]].map(([name, value]) =>
      div(span({ class: "muted" }, name), strong(typeof value === "number" ? count(value) : "–"))),
    told.testedOnRecords?.length ? div(span({ class: "muted" }, "Tested on records"), strong(told.testedOnRecords.join(", "))) : null,
    button({ label: "Hide how it ran", icon: "close", kind: "plain", hides: true, class: "explain-close", onclick: () => setParams({ explain: null }) }));

function noTypes() {
  const isProduction = place.peek().environment === "production";
  return empty({ icon: "types", title: "No record type yet",
    text: isProduction ? "Production gets its types from development." : "Make one here, or save a record from an app: in development a save makes its type.",
    action: html.a({ class: "button primary", href: address({ screen: isProduction ? "deploy" : "types", params: {} }) },
      isProduction ? "Deploy schema changes" : "Make a record type") });
}

/** @param {string} name */
const unknownType = (name) =>
  empty({ icon: "types", title: `There is no record type ${name} here`, text: "It may have been deleted, or belong to the other environment.",
    action: button({ label: "Show another", onclick: () => setParams({ type: null, f: null, sort: null, cols: null }) }) });
