/** Record Types: each type's fields, system fields always among them. */
import { computed, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { address, place, setParams } from "../core/router.js";
import { schema, schemaState } from "../core/context.js";
import { edit, edited } from "../core/draft.js";
import { useKeys } from "../core/keys.js";
import { isProduction } from "../core/session.js";
import { count } from "../core/format.js";
import { allFields, baseTypes, fieldLabel, hasIndex, indexNames, isValidName, parseType, possibleIndexes, systemFields, typeName, typeText } from "../core/schema.js";
import { actionsColumn, badge, button, checkbox, field, screenHead, select, textField, view } from "../elements/parts.js";
import { menuButton, menuItem, openForm } from "../elements/dialog.js";
import { table } from "../elements/table.js";
import { schemaBar, schemaDenial } from "../elements/schemabar.js";
import { icon } from "../elements/icon.js";

const { a, code, div, h2, nav, section, span } = html;

/**
 * The head, the list of types and the bar that the screens of the schema share.
 * @param {{title: string, detail: string, actions?: any[], content: (type: import("../core/schema.js").RecordType)
 *   => any}} options
 */
export function schemaScreen({ title, detail, actions, content }) {
  const typeNames = computed(() => JSON.stringify((edited.value?.types ?? []).map((type) => [type.name, type.fields.filter((each) => !each.system).length])));
  const chosen = computed(() => edited.value?.types.find((type) => type.name === place.value.params.type) ?? edited.value?.types[0]);
  return section({ class: "schema-screen" },
    screenHead({ title, detail, actions }),
    () => isProduction.value ? div({ class: "notice warn" }, icon("lock"), span("Production’s schema is read-only here. Change it in Development, then ", a({ class: "link", href: address({ screen: "deploy", params: {} }) }, "deploy the changes"), ".")) : null,
    view({ ...schemaState, data: schema }, { isSteady: true, show: () => div({ class: "split" },
      nav({ class: "side-list", "aria-label": "Record types" }, () => JSON.parse(typeNames.value).map((/** @type {[string, number]} */ [name, size]) =>
        a({ href: address({ params: { type: name } }), "aria-current": () => (chosen.value?.name === name ? "true" : null) }, span(name), span({ class: "muted small", title: `${size} fields` }, count(size))))),
      div({ class: "stack" }, () => (chosen.value ? content(chosen.value) : null))) }),
    schemaBar());
}

export function typesScreen() {
  useKeys([{ key: "n", label: "New record type", run: () => !schemaDenial() && newType() }]);
  return schemaScreen({
    title: "Record Types", detail: "The fields that records of each type may have.",
    actions: [button({ label: "New Record Type", icon: "add", kind: "primary", denied: schemaDenial, onclick: newType })],
    content: (type) => {
      const isUsers = type.name === "Users";
      return div({ class: "block" },
        div({ class: "block-head" }, h2(type.name), div({ class: "actions" },
          button({ label: "Add Field", icon: "add", denied: schemaDenial, onclick: () => addField(type.name) }),
          menuButton({ label: `More on ${type.name}`, icon: "more", kind: "plain", hides: true, items: () => [
            menuItem({ label: "Show records", icon: "records", href: address({ screen: "records", params: { type: type.name } }) }),
            menuItem({ label: "Indexes", icon: "index", href: address({ screen: "indexes", params: { type: type.name } }) }),
            menuItem({ label: "Delete Record Type…", icon: "trash", danger: true, denied: isUsers ? "Users always stays." : schemaDenial(), onclick: () => {
              edit((copy) => (copy.types = copy.types.filter((each) => each.name !== type.name)));
              void setParams({ type: null });
            } }),
          ] }))),
        table({
          caption: `Fields of ${type.name}`, key: (row) => row.name, rows: () => allFields(type),
          columns: () => [
            { label: "Field Name", cell: (row) => [row.system ? span({ class: "muted" }, fieldLabel(row.name)) : html.strong(row.name), isNew(type.name, row.name) ? [" ", badge("new", "accent")] : null] },
            { label: "Field Type", cell: (row) => span({ class: ["with-icon", row.system && "muted"] }, parseType(row.type).isEncrypted ? icon("lock") : null, typeName(row.type)) },
            { label: "Indexes", cell: (row) => span({ class: "badges" }, row.indexes.length ? row.indexes.map((one) => badge(indexNames[one.index] ?? one.index, one.ready === false ? "warn" : "")) : span({ class: "muted" }, row.system ? "" : "none")) },
            { ...actionsColumn, cell: (row) => row.system ? badge("system") : menuButton({ label: `More on ${row.name}`, icon: "more", kind: "plain", hides: true, items: () => [
              menuItem({ label: "Edit…", icon: "edit", denied: schemaDenial(), onclick: () => editField(type.name, row) }),
              menuItem({ label: "Delete", icon: "trash", danger: true, denied: schemaDenial(), onclick: () => edit((copy) => {
                const own = copy.types.find((each) => each.name === type.name);
                if (own) own.fields = own.fields.filter((each) => each.name !== row.name);
              }) }),
            ] }) },
          ],
        }));
    },
  });
}

/** @param {string} type @param {string} name */
const isNew = (type, name) => !systemFields.some((each) => each.name === name) && !schema.value?.types.find((each) => each.name === type)?.fields.some((each) => each.name === name);

/** The grants of a type that is made by a save, which are the usual ones. */
const usualGrants = () => [{ role: "_creator", permissions: ["WRITE"] }, { role: "_icloud", permissions: ["CREATE"] }, { role: "_world", permissions: ["READ"] }];

function newType() {
  const name = signal("");
  const isListed = signal(true);
  return openForm({
    title: "New record type", submitLabel: "Add type",
    denied: () => nameProblem(name.value, (edited.value?.types ?? []).map((type) => type.name)),
    body: () => [
      textField({ label: "Name", hint: "Such as Restaurant: a letter, then letters, digits or _.", isWide: true, autofocus: true, oninput: (text) => (name.value = text) }),
      checkbox({ label: "Index recordName and createdTimestamp, so that all records can be listed", checked: true, onchange: (isOn) => (isListed.value = isOn) }),
    ],
    submit: async () => {
      const fields = isListed.peek() ? [{ name: "___createTime", type: "TIMESTAMP", system: true, indexes: [{ index: "QUERYABLE" }, { index: "SORTABLE" }] }, { name: "___recordID", type: "REFERENCE", system: true, indexes: [{ index: "QUERYABLE" }] }] : [];
      edit((copy) => void copy.types.push({ name: name.peek(), fields, grants: usualGrants() }));
      void setParams({ type: name.peek() });
    },
  });
}

/** @param {string} name @param {string[]} taken */
const nameProblem = (name, taken) => !name ? "It needs a name." : !isValidName(name) ? "A name is a letter, then letters, digits or _." : taken.some((one) => one.toLowerCase() === name.toLowerCase()) ? `${name} is there already.` : null;

/** @param {string} typeName_ */
function addField(typeName_) {
  const name = signal("");
  const base = signal("STRING");
  const isList = signal(false);
  const isEncrypted = signal(false);
  const mayEncrypt = () => base.value !== "ASSET" && base.value !== "REFERENCE";
  const full = computed(() => typeText({ base: base.value, isList: isList.value, isEncrypted: isEncrypted.value && mayEncrypt() }));
  const indexes = signal([]);
  const taken = () => edited.value?.types.find((each) => each.name === typeName_)?.fields.map((each) => each.name) ?? [];
  return openForm({
    title: `Add a field to ${typeName_}`, submitLabel: "Add field", denied: () => nameProblem(name.value, taken()),
    body: () => [
      div({ class: "form-grid" },
        textField({ label: "Field Name", autofocus: true, oninput: (text) => (name.value = text) }),
        field({ label: "Field Type" }, (attributes) => select({ ...attributes, value: "STRING", options: baseTypes.map((value) => ({ value, label: typeName(value) })), onchange: (next) => { base.value = next; indexes.value = []; } }))),
      div({ class: "row" }, checkbox({ label: "List", checked: false, onchange: (isOn) => { isList.value = isOn; indexes.value = []; } }),
        () => (mayEncrypt() ? checkbox({ label: "Encrypted", checked: isEncrypted.peek(), onchange: (isOn) => { isEncrypted.value = isOn; indexes.value = []; } }) : null)),
      () => possibleIndexes(full.value).length ? html.fieldset({ class: "plain" }, html.legend("Indexes"), div({ class: "row" }, possibleIndexes(full.value).map((index) => checkbox({ label: indexNames[index], checked: indexes.peek().includes(index),
        onchange: (isOn) => (indexes.value = isOn ? [...indexes.peek(), index] : indexes.peek().filter((each) => each !== index)) })))) : html.p({ class: "hint" }, "A field of this type has no indexes."),
    ],
    submit: async () => edit((copy) => void copy.types.find((each) => each.name === typeName_)?.fields.push({ name: name.peek(), type: full.peek(), system: false, indexes: indexes.peek().map((index) => ({ index })) })),
  });
}

/**
 * A field's type never changes; its indexes do.
 * @param {string} typeName_
 * @param {import("../core/schema.js").Field} row
 */
function editField(typeName_, row) {
  const wanted = signal(row.indexes.map((each) => each.index));
  return openForm({
    title: `${typeName_}.${row.name}`, submitLabel: "Done",
    body: () => [
      html.p({ class: "muted" }, "Its type is ", code(row.type), " and stays: a field’s name and type never change, as apps rely on them."),
      possibleIndexes(row.type).length ? html.fieldset({ class: "plain" }, html.legend("Indexes"), div({ class: "row" }, possibleIndexes(row.type).map((index) => checkbox({ label: indexNames[index], checked: hasIndex(row, index),
        onchange: (isOn) => (wanted.value = isOn ? [...wanted.peek(), index] : wanted.peek().filter((each) => each !== index)) })))) : null,
    ],
    submit: async () => edit((copy) => {
      const own = copy.types.find((each) => each.name === typeName_)?.fields.find((each) => each.name === row.name);
      if (own) own.indexes = wanted.peek().map((index) => own.indexes.find((each) => each.index === index) ?? { index });
    }),
  });
}

