/** A query as a command, a request and Swift. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { place } from "../core/router.js";
import { shellWord } from "../core/format.js";
import { button, toast } from "../elements/parts.js";
import { openDialog } from "../elements/dialog.js";

const { code, div, p, pre } = html;

/** @type {Record<string, string>} */
const signs = { EQUALS: "=", NOT_EQUALS: "!=", LESS_THAN: "<", LESS_THAN_OR_EQUALS: "<=", GREATER_THAN: ">", GREATER_THAN_OR_EQUALS: ">=" };

/** @param {any} filter */
const plainValue = ({ fieldValue: { value }, distance }) =>
  value?.latitude !== undefined ? `${value.latitude},${value.longitude}${distance ? `,${distance}m` : ""}`
    : Array.isArray(value) ? value.map((one) => one.recordName ?? one).join(",") : (value.recordName ?? String(value));

/** @param {any} body */
function asCurl(body) {
  const { container, environment } = place.peek();
  const address = `${location.origin}/database/1/${container}/${environment}/public/records/query?ckAPIToken=$ZONEKEEPER_API_TOKEN`;
  return `curl --cacert "$ZONEKEEPER_CA" "${address}" \\\n    --json ${shellWord(JSON.stringify(body))}`;
}

/** @param {any} body */
function asCommand({ query, explain }) {
  const { container, environment } = place.peek();
  const parts = ["zonekeeper record query", `--container ${shellWord(container ?? "")} --environment ${environment}`, `--type ${query.recordType}`];
  for (const filter of query.filterBy ?? []) {
    const name = filter.fieldName ?? filter.systemFieldName ?? "*";
    parts.push(`--filter ${shellWord(`${name} ${signs[filter.comparator] ?? filter.comparator} ${plainValue(filter)}`)}`);
  }
  for (const sort of query.sortBy ?? []) parts.push(`--sort ${sort.ascending ? "" : "-"}${sort.fieldName ?? sort.systemFieldName}`);
  if (explain) parts.push("--explain");
  return parts.join(" \\\n    ");
}

/** @type {Record<string, string>} */
const swiftNames = { createdTimestamp: "creationDate", modifiedTimestamp: "modificationDate", createdUserRecordName: "creatorUserRecordID", modifiedUserRecordName: "lastModifiedUserRecordID", recordName: "recordID" };

/** @param {any} body */
function asSwift({ query }) {
  const [formats, values] = [[], []];
  const literal = (value, type) =>
    type === "TIMESTAMP" ? `Date(timeIntervalSince1970: ${Number(value) / 1000})` : value?.recordName !== undefined ? `CKRecord.ID(recordName: ${JSON.stringify(value.recordName)})`
      : type === "INT64" || type === "DOUBLE" ? String(value) : JSON.stringify(value);
  for (const { fieldName, systemFieldName, comparator, fieldValue, distance } of query.filterBy ?? []) {
    const name = fieldName ?? swiftNames[systemFieldName] ?? systemFieldName ?? "allTokens";
    const { value, type } = fieldValue;
    if (comparator === "NEAR") {
      formats.push(`distanceToLocation:fromLocation:(${name}, %@) < ${distance ?? 100000}`);
      values.push(`CLLocation(latitude: ${value.latitude}, longitude: ${value.longitude})`);
      continue;
    }
    const form = signs[comparator] ? `${name} ${signs[comparator]} %@` : { IN: `${name} IN %@`, NOT_IN: `NOT (${name} IN %@)`, BEGINS_WITH: `${name} BEGINSWITH %@`, NOT_BEGINS_WITH: `NOT (${name} BEGINSWITH %@)`, LIST_CONTAINS: `${name} CONTAINS %@`, NOT_LIST_CONTAINS: `NOT (${name} CONTAINS %@)`, CONTAINS_ALL_TOKENS: `${fieldName ?? "self"} CONTAINS %@`, CONTAINS_ANY_TOKENS: `ANY tokens(${fieldName ?? "self"}) IN %@` }[comparator];
    formats.push(form ?? `${name} = %@`);
    values.push(Array.isArray(value) ? `[${value.map((one) => literal(one, type.replace("_LIST", ""))).join(", ")}]` : literal(value, type));
  }
  const predicate = formats.length ? `NSPredicate(format: ${[JSON.stringify(formats.join(" AND ")), ...values].join(", ")})` : "NSPredicate(value: true)";
  const sort = (query.sortBy ?? []).map((each) => `NSSortDescriptor(key: "${each.fieldName ?? swiftNames[each.systemFieldName]}", ascending: ${each.ascending})`);
  return [`let query = CKQuery(recordType: "${query.recordType}", predicate: ${predicate})`, ...(sort.length ? [`query.sortDescriptors = [${sort.join(", ")}]`] : []),
    "let (results, _) = try await CKContainer.default().publicCloudDatabase.records(matching: query)"].join("\n");
}

/** @param {any} body */
export function showAsCode(body) {
  const forms = /** @type {const} */ ([["curl", asCurl], ["Command", asCommand], ["Swift", asSwift]]);
  const chosen = signal("curl");
  return openDialog({ title: "This query elsewhere", class: "wide", content: () => div({ class: "dialog-body" },
    div({ class: "segmented", role: "group", "aria-label": "Form" }, forms.map(([name]) => html.button({ type: "button", "aria-pressed": () => String(chosen.value === name), onclick: () => (chosen.value = name) }, name))),
    () => {
      const text = (forms.find(([name]) => name === chosen.value))[1](body);
      return [pre({ class: "code", tabindex: "0" }, code(text)), button({ label: "Copy", icon: "copy", onclick: () => navigator.clipboard.writeText(text).then(() => toast("Copied")) })];
    },
    p({ class: "hint" }, "The token is read from your shell’s environment; none is copied.")) });
}
