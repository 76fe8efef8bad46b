/** Indexes: what a type's records can be found and sorted by, and how far each index is built. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { every } from "../core/resource.js";
import { schema, schemaState } from "../core/context.js";
import { edit } from "../core/draft.js";
import { useKeys } from "../core/keys.js";
import { count } from "../core/format.js";
import { allFields, fieldLabel, hasIndex, indexNames, possibleIndexes, typeName } from "../core/schema.js";
import { actionsColumn, badge, button, empty, field, select } from "../elements/parts.js";
import { openForm } from "../elements/dialog.js";
import { table } from "../elements/table.js";
import { schemaDenial } from "../elements/schemabar.js";
import { schemaScreen } from "./types.js";

const { div, h2, span } = html;

/** @type {Record<string, string>} */
const purposes = { QUERYABLE: "found by equality, prefixes, list members and nearness", SORTABLE: "compared and sorted by order", SEARCHABLE: "searched for words" };

export function indexesScreen() {
  /** @type {import("../core/schema.js").RecordType | null} */ let shown = null;
  useKeys([{ key: "n", label: "Add a basic index", run: () => !schemaDenial() && shown && addIndex(shown) }]);
  // An index that is being built tells how far it is.
  every(() => schema.peek()?.types.some((type) => type.fields.some((each) => each.indexes.some((one) => one.ready === false))) && schemaState.reload(), 2000);
  return schemaScreen({
    title: "Indexes", detail: "Queries need them: Queryable to find, Sortable to order, Searchable for words.",
    content: (type) => {
      shown = type;
      const rows = allFields(type).flatMap((each) => each.indexes.map((one) => ({ field: each, ...one })));
      return div({ class: "block" },
        div({ class: "block-head" }, h2(type.name), button({ label: "Add Basic Index", icon: "add", denied: schemaDenial, onclick: () => addIndex(type) })),
        rows.length === 0 ? empty({ icon: "index", title: "No index yet", text: "Without one, records of this type are found by their names only." }) : table({
          caption: `Indexes of ${type.name}`, key: (row) => `${row.field.name} ${row.index}`, rows: () => rows,
          columns: () => [
            { label: "Field", cell: (row) => [html.strong(fieldLabel(row.field.name)), " ", span({ class: "muted small" }, typeName(row.field.type))] },
            { label: "Index Type", cell: (row) => span({ title: purposes[row.index] }, indexNames[row.index] ?? row.index) },
            { label: "State", cell: (row) => row.ready === undefined ? badge("not saved", "accent") : row.ready ? badge("ready", "good") : badge(`${count(row.done ?? 0)} of ${count(row.total ?? 0)}`, "warn") },
            { ...actionsColumn, cell: (row) => button({ label: `Remove ${fieldLabel(row.field.name)} ${indexNames[row.index]}`, icon: "trash", kind: "plain", hides: true, denied: schemaDenial,
              onclick: () => change(type.name, row.field, (list) => list.filter((one) => one.index !== row.index)) }) },
          ],
        }));
    },
  });
}

/** @param {string} type @param {import("../core/schema.js").Field} of @param {(list: any[]) => any[]} to */
const change = (type, of, to) => edit((copy) => {
  const own = copy.types.find((each) => each.name === type);
  let one = own?.fields.find((each) => each.name === of.name);
  if (!one) own?.fields.push((one = { ...of, indexes: [] }));
  one.indexes = to(one.indexes);
});

/** @param {import("../core/schema.js").RecordType} type */
function addIndex(type) {
  const open = allFields(type).filter((each) => each.name !== "___etag" && possibleIndexes(each.type).some((index) => !hasIndex(each, index)));
  const name = signal(open[0]?.name ?? "");
  const chosen = () => open.find((each) => each.name === name.value);
  const left = () => possibleIndexes(chosen()?.type ?? "ASSET").filter((index) => !hasIndex((chosen()), index));
  const index = signal(left()[0] ?? "");
  return openForm({
    title: `Add an index to ${type.name}`, submitLabel: "Add index", denied: () => (open.length ? null : "Every field has all its indexes."),
    body: () => [div({ class: "form-grid" },
      field({ label: "Field" }, (attributes) => select({ ...attributes, value: name.peek(), options: open.map((each) => ({ value: each.name, label: fieldLabel(each.name) })), onchange: (next) => { name.value = next; index.value = left()[0] ?? ""; } })),
      field({ label: "Index Type" }, (attributes) => select({ ...attributes, value: () => index.value, options: () => left().map((value) => ({ value, label: indexNames[value] })), onchange: (next) => (index.value = next) }))),
    () => html.p({ class: "hint" }, `Records can then be ${purposes[index.value] ?? ""} of ${fieldLabel(name.value)}.`)],
    submit: async () => change(type.name, (chosen()), (list) => [...list, { index: index.peek() }]),
  });
}
