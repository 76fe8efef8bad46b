/** A dialog that finds a record on the server: by its name, or among the records of a type. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, lookupRecords, queryRecords } from "../core/api.js";
import { resource } from "../core/resource.js";
import { place } from "../core/router.js";
import { schemaState } from "../core/context.js";
import { hasIndex } from "../core/schema.js";
import { openDialog } from "./dialog.js";
import { button, empty, field, select, textField, view } from "./parts.js";
import { summary } from "./values.js";

const { div, span } = html;

/** @returns {Promise<string | undefined>} the name of the record that was chosen */
export const findRecord = () =>
  openDialog({
    title: "Find a record", class: "tall",
    content: (close) => {
      const types = () => schemaState.data.value?.types ?? [];
      const typeName = signal(types().find((type) => type.name !== "Users")?.name ?? "Users");
      const text = signal("");
      const found = resource((abort) => {
        const type = types().find((each) => each.name === typeName.value);
        return type ? find(type, text.value.trim(), abort) : null;
      });
      return div({ class: "dialog-body" },
        div({ class: "parts" },
          field({ label: "Record type" }, (attributes) => select({ ...attributes, value: typeName.peek(), options: types().map((type) => type.name), onchange: (next) => (typeName.value = next) })),
          textField({ label: "Record name, or words of a searchable field", autofocus: true, oninput: (text) => (text.value = text) })),
        view(found, {
          isEmpty: (records) => records.length === 0,
          empty: () => empty({ icon: "search", title: "No record found" }),
          show: (records) => div({ class: "pick-list" }, records.map((record) =>
            button({ kind: "plain", class: "pick", label: [html.code(record.recordName), span({ class: "muted" }, summary(record))], onclick: () => close(record.recordName) }))),
        }));
    },
  });

/**
 * @param {import("../core/schema.js").RecordType} type
 * @param {string} text
 * @param {AbortSignal} abort
 * @returns {Promise<any[]>}
 */
async function find(type, text, abort) {
  const at = { place: place.peek(), signal: abort };
  const filterBy = [];
  if (text && type.fields.some((each) => hasIndex(each, "SEARCHABLE"))) {
    filterBy.push({ comparator: "CONTAINS_ALL_TOKENS", fieldValue: { value: `${text}*`, type: "STRING" } });
  }
  const named = text ? call(lookupRecords, { ...at, body: { records: [{ recordName: text }], numbersAsStrings: true } }) : null;
  const listed = call(queryRecords, { ...at, body: { query: { recordType: type.name, filterBy }, resultsLimit: 30, numbersAsStrings: true } });
  const results = await Promise.allSettled([named, listed]);
  const exact = results[0].status === "fulfilled" ? (results[0].value?.records ?? []).filter((one) => one.fields) : [];
  if (results[1].status === "rejected") {
    if (exact.length > 0) return exact;
    throw results[1].reason;
  }
  const others = results[1].value.records.filter((one) => !exact.some((same) => same.recordName === one.recordName));
  const needle = text.toLowerCase();
  return [...exact, ...(filterBy.length > 0 || !text ? others : others.filter((one) => JSON.stringify(one).toLowerCase().includes(needle)))];
}
