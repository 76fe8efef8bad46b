/** Limits: what the container is held to, and which rule would refuse a request now. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { every, resource } from "../core/resource.js";
import { address, place, setParams } from "../core/router.js";
import { denial } from "../core/session.js";
import { bytes, count, isUnlimited, milliseconds, time } from "../core/format.js";
import { actionsColumn, badge, button, checkbox, errorBox, field, link, meter, screenHead, select, view } from "../elements/parts.js";
import { refusalBox } from "../elements/requests.js";
import { limitText, openLimitForm } from "../elements/limitform.js";
import { table } from "../elements/table.js";
import { icon } from "../elements/icon.js";

const { code, div, h2, input, p, section, span, strong } = html;

/** What the limits are, in words. @type {Record<string, string>} */
const words = {
  requestsPerSecond: "Requests a second, over all nodes", requestsPer100kUsers: "Requests a second more for each 100,000 users", requestsPerSecondMax: "Requests a second at most, however many users",
  keyValueRequestsPerSecond: "Preference requests a second", keyValueRequestsPer100kUsers: "Preference requests a second more for each 100,000 users", keyValueRequestsPerSecondMax: "Preference requests a second at most",
  concurrentRequests: "Requests at once, of one node", databaseBytes: "Public data", databaseBytesPerUser: "Public data more for each user", databaseBytesMax: "Public data at most",
  databaseRecords: "Public records", assetBytes: "Public assets", assetBytesPerUser: "Public assets more for each user", assetBytesMax: "Public assets at most",
  assetUploadBytes: "One uploaded file", assetUploadBytesMax: "One file whose size was announced", unsavedAssetBytes: "Uploads of a user not saved yet",
  transferBytesPerMonth: "Transfer in a month", transferBytesPerUser: "Transfer in a month more for each user", transferBytesPerMonthMax: "Transfer in a month at most",
  userBytes: "Private data of a user", userRecords: "Private records of a user", userAssetBytes: "Private assets of a user", schemaGrowthsPerMinute: "Saves a minute that may add to the schema",
  actAsRequestsPerSecond: "Requests a second of an admin who acts as a user", actAsMinutes: "Minutes for which an admin may act as a user, in development", actAsProductionMinutes: "Minutes for which an admin may act as a user, in production",
  recordVersionDays: "Days for which earlier versions of records are kept", recordVersionsMax: "Earlier versions of one record",
};

const actions = ["records/modify", "records/query", "records/lookup", "changes/zone", "zones/modify", "assets/upload", "kv/set", "kv/list"];

export function limitsScreen() {
  const limits = resource((abort) => call("GET /admin/1/limits", { query: { container: place.value.container }, signal: abort }));
  const denied = () => denial("PATCH /admin/1/limits");
  return section(
    screenHead({ title: "Limits", detail: "What this container is held to, in both environments, and what a request would meet now." }),
    refusedPart(),
    section({ class: "block" }, h2("All limits"), p({ class: "muted" }, "A container’s own value counts before the cluster’s, and that before the default. Thresholds of alerts are on ", link(address({ screen: "telemetry", params: {} }), "Telemetry"), "."),
      view(limits, { show: (found) => table({
        caption: "Limits", class: "limits-table", isWrapped: true, key: (row) => row.name, rows: () => found.limits.filter((row) => !row.name.startsWith("alert")),
        columns: () => [
          { label: "Limit", cell: (row) => [span(words[row.name] ?? row.name), html.br(), code({ class: "muted small" }, row.name), div({ class: "narrow-only" }, strong(limitText(row.value, row.unit)), " ", badge(row.source, row.source === "container" ? "accent" : ""))] },
          { label: "Value", class: "number", cell: (row) => strong(limitText(row.value, row.unit)) },
          { label: "In force", class: "number", cell: (row) => (row.name in found.effective ? limitText(found.effective[row.name], row.unit) : span({ class: "unset" }, "–")) },
          { label: "Source", cell: (row) => badge(row.source, row.source === "container" ? "accent" : "") },
          { ...actionsColumn, cell: (row) => button({ label: `Set ${row.name}`, icon: "edit", kind: "plain", hides: true, denied, onclick: () => openLimitForm(row, { title: words[row.name] ?? row.name, container: place.peek().container, reload: limits.reload }) }) },
        ],
      }) })),
    explainPart());
}

function explainPart() {
  const params = () => place.value.params;
  const isLive = signal(false);
  const found = resource((abort) => {
    const { container, environment } = place.value;
    const database = params().db ?? "public";
    if (database === "private" && !params().user) return null;
    return call("GET /admin/1/limits/explain", { query: { container, environment, database, action: params().action ?? "records/modify", user: params().user }, signal: abort });
  });
  every(() => isLive.peek() && found.reload(), 1000);
  return section({ class: "block" }, div({ class: "block-head" }, div(h2("What would a request meet now?"), p({ class: "muted" }, "Describe one: these rules hold it, and this is what is left of each.")),
    checkbox({ label: "Live", checked: false, onchange: (isOn) => (isLive.value = isOn) })),
    div({ class: "form-grid explain-form" },
      field({ label: "Request" }, (attributes) => select({ ...attributes, value: () => params().action ?? "records/modify", options: actions, onchange: (next) => setParams({ action: next }) })),
      field({ label: "Database" }, (attributes) => select({ ...attributes, value: () => params().db ?? "public", options: [{ value: "public", label: "Public" }, { value: "private", label: "Private" }], onchange: (next) => setParams({ db: next === "private" ? "private" : null }) })),
      field({ label: "User", hint: "Needed for a private database." }, (attributes) => input({ ...attributes, value: () => params().user ?? "", autocomplete: "off", spellcheck: "false", onchange: (event) => setParams({ user: event.target.value.trim() }) }))),
    view(found, { error: (error) => errorBox(error, { title: "No answer", retry: found.reload }), show: ({ rules, verdict }) => [
      div({ class: ["verdict", verdict === "allowed" ? "good" : "bad"], role: "status" }, icon(verdict === "allowed" ? "check" : "danger"), strong(verdict === "allowed" ? "It would be allowed now" : `It would be ${verdict}`)),
      div({ class: "rules" }, rules.map((rule) => div({ class: ["rule", rule.fires && "fires"] },
        meter({ label: [strong(rule.name), rule.fires ? [" ", badge("refuses", "bad")] : null], used: rule.used, limit: rule.limit, text: ruleText(rule) }), p({ class: "muted small" }, rule.reason)))),
    ] }));
}

/** Why a request was refused that was answered a while ago. */
function refusedPart() {
  const id = () => place.value.params.request ?? "";
  const found = resource((abort) => (id() ? call("GET /admin/1/requests/trace", { query: { id: id() }, signal: abort }) : null));
  return section({ class: "block" }, h2("Why was a request refused?"), p({ class: "muted" }, "By its id, which each answer has, and each error here: the rule as it was at that moment."),
    div({ class: "form-grid explain-form" }, field({ label: "Request id", isWide: true }, (attributes) => input({ ...attributes, class: "mono", value: id, autocomplete: "off", spellcheck: "false", onchange: (event) => setParams({ request: event.target.value.trim() }) }))),
    view(found, { error: (error) => errorBox(error, { title: "No answer", retry: found.reload }), show: ({ request }) => [
      p({ class: "small muted" }, `${request.operation}, ${time(request.time)}, answered with ${request.status}`),
      request.refusal ? refusalBox(request) : div({ class: "verdict good" }, icon("check"), strong(request.code ? `No limit and no permission refused it: ${request.code}` : "It was not refused")),
      link(address({ screen: "logs", params: { request: request.id } }), "See it in the log")] }));
}

/** @param {any} rule */
function ruleText({ name, used, limit, resetSeconds }) {
  const text = (value) => (isUnlimited(value) ? "unlimited" : /bytes/i.test(name) ? bytes(value) : count(value));
  return `${used === undefined ? "limit" : `${text(used)} of`} ${text(limit)}${resetSeconds ? `, free in ${milliseconds(resetSeconds * 1000)}` : ""}`;
}
