/** The filters of a query: fields, and the comparisons that their types and indexes allow. */
import { each, html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError } from "../core/resource.js";
import { place, setParams } from "../core/router.js";
import { denial } from "../core/session.js";
import { schemaState } from "../core/context.js";
import { allFields, comparators, fieldLabel, hasIndex, indexNames, systemFields } from "../core/schema.js";
import { button, select, toast } from "../elements/parts.js";
import { filterEditor, filterValue } from "../elements/fields.js";

const { div, span } = html;

/** @typedef {{field: string, comparator: string, value: string}} Filter `field` is empty for all searchable ones */

/** @param {string | undefined} text the parameter of the address @returns {Filter[]} */
export function readFilters(text) {
  try {
    return JSON.parse(text ?? "[]").map(([field, comparator, value]) => ({ field, comparator, value }));
  } catch {
    return [];
  }
}

/** @param {Filter[]} filters */
const write = (filters) => setParams({ f: filters.length ? JSON.stringify(filters.map(({ field, comparator, value }) => [field, comparator, value])) : null });

/** @param {import("../core/schema.js").RecordType} type @param {string} label */
const fieldOf = (type, label) =>
  label === "" ? { name: "", type: "STRING", system: false, indexes: [{ index: "SEARCHABLE" }] } : allFields(type).find((field) => fieldLabel(field.name) === label);

/**
 * The filters as a request has them; those without a value are left out.
 * @param {import("../core/schema.js").RecordType} type
 * @param {Filter[]} filters
 */
export function requestFilters(type, filters) {
  return filters.flatMap(({ field: label, comparator, value }) => {
    const field = fieldOf(type, label);
    if (!field || value === "") return [];
    const system = systemFields.find((each) => each.query === label);
    const { fieldValue, ...rest } = filterValue(field.type, comparator, value);
    const isID = label === "recordName";
    const name = label === "" ? {} : system ? { systemFieldName: label } : { fieldName: label };
    const plain = isID ? { value: comparator === "IN" || comparator === "NOT_IN" ? value.split(",").map((part) => ({ recordName: part.trim(), action: "NONE" })) : { recordName: value, action: "NONE" }, type: fieldValue.type } : fieldValue;
    const distance = "distance" in rest && rest.distance ? { distance: rest.distance } : {};
    return [{ ...name, comparator, fieldValue: plain, ...distance }];
  });
}

/** @param {{type: import("../core/schema.js").RecordType, filters: Filter[]}} options */
export function filterBar({ type, filters }) {
  const change = (at, /** @type {Partial<Filter>} */ to) => write(filters.map((filter, index) => (index === at ? { ...filter, ...to } : filter)));
  const fields = allFields(type).filter((field) => field.name !== "___etag" && comparators(field.type).length > 0);
  const isUsable = (field) => comparators(field.type).some((one) => hasIndex(field, one.index));
  const usable = fields.filter(isUsable).map((field) => fieldLabel(field.name));
  const others = fields.filter((field) => !isUsable(field)).map((field) => fieldLabel(field.name));
  const hasWords = type.fields.some((field) => hasIndex(field, "SEARCHABLE"));
  const options = [
    ...(hasWords ? [{ value: "", label: "Any searchable field" }] : []), ...usable,
    ...(others.length ? [{ group: "Without an index", options: others }] : []),
  ];
  const add = async () => {
    const field = hasWords ? "" : (usable.find((name) => !systemFields.some((system) => system.label === name)) ?? usable[0] ?? others[0]);
    await write([...filters, { field, comparator: firstComparator(type, field), value: "" }]);
    requestAnimationFrame(() => ([...document.querySelectorAll(".filter select")].at(-2))?.focus());
  };
  return div({ class: "filters", role: "group", "aria-label": "Filters" },
    each(() => filters.map((filter, index) => ({ ...filter, index })), (filter) => `${filter.index}`, (item) => {
      const { field: label, comparator, value, index } = item.peek();
      const field = fieldOf(type, label);
      const all = label === "" ? comparators("STRING").filter((one) => one.index === "SEARCHABLE") : comparators(field?.type ?? "STRING");
      const used = all.find((one) => one.name === comparator);
      const lacks = field && used && !hasIndex(field, used.index) ? used.index : null;
      return div({ class: ["filter", lacks && "lacking"] },
        select({ "aria-label": "Field", value: label, options, onchange: (name) => change(index, { field: name, comparator: firstComparator(type, name), value: "" }) }),
        select({ "aria-label": "Comparison", value: comparator, onchange: (name) => change(index, { comparator: name }),
          options: all.map((one) => ({ value: one.name, label: field && hasIndex(field, one.index) ? one.label : `${one.label} (no index)` })) }),
        filterEditor({ type: field?.type ?? "STRING", comparator, value, label: `Value for ${label || "any field"}`, onchange: (text) => change(index, { value: text }) }),
        lacks ? button({ label: `Add ${indexNames[lacks]}`, kind: "plain", title: `${label} has no index ${indexNames[lacks]}, which this comparison needs`,
          denied: () => denial("POST /admin/1/schema/indexes", { inEnvironment: true }), onclick: () => addIndex(type.name, (field).name, lacks) }) : null,
        button({ label: `Remove the filter of ${label || "any field"}`, icon: "close", kind: "plain", hides: true, onclick: () => write(filters.filter((_, at) => at !== index)) }));
    }),
    button({ label: filters.length ? "Filter" : "Add filter", icon: "filter", kind: "plain", onclick: add, "data-add-filter": "" }),
    filters.length > 1 ? button({ label: "Clear", kind: "plain", onclick: () => write([]) }) : null,
    filters.some((filter) => filter.value === "") ? span({ class: "hint" }, "A filter counts once it has a value.") : null);
}

/** The first comparison that has its index, or the first of all. @param {any} type @param {string} label */
function firstComparator(type, label) {
  const field = fieldOf(type, label);
  const all = comparators(field?.type ?? "STRING");
  return (all.find((one) => field && hasIndex(field, one.index)) ?? all[0]).name;
}

/** @param {string} type @param {string} field @param {string} index */
async function addIndex(type, field, index) {
  const { container, environment } = place.peek();
  try {
    await call("POST /admin/1/schema/indexes", { query: { container, environment }, body: { type, field, index } });
    schemaState.reload();
    toast(`${fieldLabel(field)} is ${indexNames[index]} now`);
  } catch (error) {
    toast(asRequestError(error).message, "bad");
  }
}
