/** One record: an editor for each field, saved whole with the record's change tag. */
import { computed, effect, onCleanup, signal, untracked } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, lookupRecords, modifyRecords, newKey, RequestError } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { guardLeaving, here, recordsHere, setParams } from "../core/router.js";
import { denial } from "../core/session.js";
import { schema } from "../core/context.js";
import { acting } from "../core/acting.js";
import { useKeys } from "../core/keys.js";
import { draftAt, draftHome, draftKey, dropDraft, keepEdit, setDraft, takeSaved } from "../core/recorddrafts.js";
import { plural, time } from "../core/format.js";
import { parseType, typeName, wireType } from "../core/schema.js";
import { announce, badge, button, copyable, empty, errorBox, facts, toast, uniqueID, whileSlow } from "../elements/parts.js";
import { confirm, menuButton, menuItem, openDialog, openForm } from "../elements/dialog.js";
import { valueEditor } from "../elements/fields.js";
import { valueText } from "../elements/values.js";
import { showVersions } from "./recordversions.js";

const { aside, code, div, footer, form, h2, h3, header, input, label, p, pre, span } = html;

/** @type {Record<string, any>} */ const noEdits = {};

/** Whether the record takes the whole page, and the table beside it is hidden; frame.css has the same width. */
const narrow = matchMedia("(max-width: 1000px)");
const isAlone = signal(narrow.matches);
narrow.addEventListener("change", () => (isAlone.value = narrow.matches));

/**
 * @param {{name: string | null, type: string, close: () => any,
 *     changes: {saved: (record: any, isNew: boolean) => void, deleted: (name: string) => void}}} options `name` is
 *   null for a new record
 */
export function recordPane({ name, type: newType, close, changes }) {
  const [at, opened, home] = [recordsHere(), here.peek(), untracked(draftHome)];
  const key = draftKey(home, name, name === null ? newType : undefined);
  // Who saves may go on to another record, or to another place, before the answer is there.
  let isOpen = true;
  onCleanup(() => (isOpen = false));
  const isHere = () => here.peek() === opened;
  const ask = (operation, body, options = {}) => call(operation, { ...options, place: at.place, body: { ...at.zone, ...body, numbersAsStrings: true } });
  const lookUp = (abort) => ask(lookupRecords, { records: [{ recordName: name }] }, { signal: abort });
  const loaded = resource((abort) => name === null
    ? Promise.resolve({ recordType: newType, fields: {} })
    : lookUp(abort).then(({ records: [record] }) => {
      if (record.serverErrorCode) throw new RequestError(200, record);
      return record;
    }));
  const record = signal(null);
  effect(() => void (record.value = loaded.data.value ?? null));
  const draft = computed(() => draftAt(key)?.values ?? noEdits);
  const problems = signal(/** @type {Record<string, string>} */ ({}));
  const newName = signal("");
  const error = signal(null);
  const isSaving = signal(false);
  const recordType = computed(() => record.value?.recordType);
  const fields = computed(() => (schema.value?.types.find((each) => each.name === recordType.value)?.fields ?? []).filter((field) => !field.system));
  const draftNow = () => untracked(() => draftAt(key));
  const changed = computed(() => Object.keys(draft.value));
  const isDirty = computed(() => changed.value.length > 0 || newName.value !== "");
  const denied = () => denial(modifyRecords, { inEnvironment: true });
  // With each turn, editors show what is loaded; those whose field is edited stay as they are.
  const turn = signal(0);
  const reset = () => {
    dropDraft(key);
    problems.value = {};
    error.value = null;
    turn.value += 1;
  };
  const change = (field, value, problem) => {
    keepEdit(key, record.peek(), field, value, isSaving.peek());
    const { [field]: _, ...rest } = problems.peek();
    problems.value = problem ? { ...rest, [field]: problem } : rest;
  };
  const leave = async () => {
    if (!isDirty.peek()) return true;
    const mayGo = await confirm({ title: "Leave without saving?", action: "Discard changes", text: `${plural(Math.max(changed.peek().length, 1), "field")} of ${name ?? "the new record"} changed.` });
    if (mayGo) reset();
    return Boolean(mayGo);
  };
  onCleanup(guardLeaving(leave));
  onCleanup(() => draftNow() && toast(`Kept, not saved: ${plural(Object.keys(draftNow().values).length, "field")} of ${name ?? `a new ${newType}`}`));
  const warn = (event) => isDirty.peek() && event.preventDefault();
  addEventListener("beforeunload", warn);
  onCleanup(() => removeEventListener("beforeunload", warn));
  const leaveAndClose = async () => (await leave()) && close();

  // A save that is sent again after its answer was lost has the same key, so that it is done once.
  let sent = { text: "", key: "" };
  /** @param {Record<string, any>} edits */
  const modify = async (edits) => {
    // Edits that were kept go on from what they began with: what others saved since is not overwritten unseen.
    const { tag = record.peek().recordChangeTag } = draftNow() ?? {};
    const values = Object.fromEntries(Object.entries(edits).map(([field, value]) => {
      const definition = fields.peek().find((each) => each.name === field);
      return [field, value === null ? null : { value, ...(definition ? { type: wireType(definition.type) } : {}) }];
    }));
    const given = name ?? (newName.peek().trim() || undefined);
    const operation = { operationType: name === null ? "create" : "update", record: { recordType: record.peek().recordType, recordName: given, recordChangeTag: tag, fields: values } };
    const text = JSON.stringify(operation);
    if (sent.text !== text) sent = { text, key: newKey() };
    const { records: [answer] } = await ask(modifyRecords, { operations: [operation] }, { key: sent.key });
    sent.text = "";
    return answer;
  };
  const save = async () => {
    if (isSaving.peek() || denied() || !record.peek() || (name !== null && !isDirty.peek())) return;
    const [bad] = Object.keys(problems.peek());
    if (bad) return announce(`${bad}: ${problems.peek()[bad]}`);
    isSaving.value = true;
    error.value = null;
    const edits = draft.peek();
    try {
      const answer = await modify(edits);
      if (answer.serverErrorCode === "CONFLICT" && name !== null && isOpen) return await settle(answer.serverRecord);
      if (answer.serverErrorCode) throw new RequestError(200, answer);
      finish(answer, edits);
    } catch (failure) {
      error.value = asRequestError(failure);
      if (!isOpen) toast(`${name ?? "The new record"} was not saved: ${error.peek().message}`, "bad");
    } finally {
      isSaving.value = false;
    }
  };
  /** @param {any} answer the record as it is now @param {Record<string, any>} edits the values that were saved */
  const finish = (answer, edits) => {
    const to = draftKey(home, answer.recordName);
    takeSaved(key, edits, answer, to);
    const later = untracked(() => draftAt(to))?.values ?? noEdits;
    problems.value = Object.fromEntries(Object.entries(problems.peek()).filter(([field]) => field in later));
    newName.value = "";
    record.value = answer;
    turn.value += 1;
    if (isHere()) changes.saved(answer, name === null);
    toast(name === null ? `Made ${answer.recordName}` : `Saved ${answer.recordName}`);
    if (name === null && isOpen) void setParams({ new: null, record: answer.recordName }, { replace: true });
  };
  /** Lets the person choose, field by field, between both. @param {any} theirs */
  const settle = async (theirs) => {
    const server = theirs ?? (await lookUp()).records[0];
    const mine = draftNow();
    const kept = mine && (await chooseValues({ fields: fields.peek(), base: { ...record.peek().fields, ...mine.base }, server, draft: mine.values }));
    if (!kept) return;
    record.value = server;
    setDraft(key, { values: kept, base: server.fields, tag: server.recordChangeTag });
    turn.value += 1;
    isSaving.value = false;
    if (Object.keys(kept).length) await save();
    else finish(server, kept);
  };
  const remove = async () => {
    const isProduction = at.place.environment === "production";
    await confirm({
      title: `Delete ${name}?`, action: "Delete", typed: isProduction ? name : null,
      text: "The record goes, and with it those that refer to it with “delete this too”. It can be restored as long as its versions are kept, where the container keeps any.",
      submit: async () => {
        const { records: [answer] } = await ask(modifyRecords, { operations: [{ operationType: "delete", record: { recordName: name, recordChangeTag: record.peek().recordChangeTag } }] });
        if (answer.serverErrorCode) throw new RequestError(200, answer);
        reset();
        toast(`Deleted ${name}`);
        if (!isHere()) return;
        changes.deleted(name);
        close();
      },
    });
  };
  const versions = async () => {
    if (!(await leave())) return;
    await showVersions({ name, restored: (answer) => {
      record.value = answer;
      reset();
      if (isHere()) changes.saved(answer, false);
    } });
  };
  const duplicate = async () => {
    const copied = Object.fromEntries(Object.entries(record.peek().fields).filter(([, field]) => !String(field.type).startsWith("ASSETID")).map(([field, { value }]) => [field, value]));
    if (!(await leave())) return;
    setDraft(draftKey(home, null, record.peek().recordType), { values: copied, base: {} });
    await setParams({ record: null, new: "1", type: record.peek().recordType });
  };
  useKeys([
    { key: "Ctrl+S", label: "Save the record", run: save },
    { key: "Escape", label: "Close the record", run: leaveAndClose },
    { key: "e", label: "Edit the record", run: () => document.querySelector(".pane .field-row input, .pane .field-row textarea")?.focus() },
  ]);
  const titleID = uniqueID();
  return aside({ class: "pane", "aria-labelledby": titleID, ref: (element) => name === null && requestAnimationFrame(() => element.querySelector("input")?.focus()) },
    header({ class: "pane-head" },
      div({ class: "pane-title" }, h2({ id: titleID, title: name ?? "", "aria-level": () => (isAlone.value ? "1" : null) }, name ?? `New ${newType}`),
        div({ class: "row" }, () => record.value ? badge(record.value.recordType) : null, () => record.value?.recordChangeTag ? span({ class: "muted small" }, "tag ", code(record.value.recordChangeTag)) : null)),
      name === null ? null : menuButton({ label: "More on this record", icon: "more", kind: "plain", hides: true, items: () => [
        menuItem({ label: "Duplicate", icon: "copy", denied: denied(), onclick: duplicate }),
        menuItem({ label: "Versions…", icon: "reset", onclick: versions }),
        menuItem({ label: "Show as JSON", icon: "text", onclick: () => showJSON(record.peek()) }),
        menuItem({ label: "Load again", icon: "refresh", onclick: async () => (await leave()) && loaded.reload() }),
        menuItem({ label: "Delete…", icon: "trash", danger: true, denied: denied(), onclick: remove }),
      ] }),
      button({ label: "Close", icon: "close", kind: "plain", hides: true, onclick: leaveAndClose })),
    form({ class: "pane-body", id: `${titleID}-form`, novalidate: true, onsubmit: (event) => { event.preventDefault(); void save(); } },
      () => (!loaded.error.value ? null : loaded.error.value.code !== "NOT_FOUND" ? errorBox(loaded.error.value, { retry: loaded.reload })
        : empty({ icon: "records", title: "There is no such record", text: "It may have been deleted, or be of another zone or environment.",
          action: div({ class: "actions" }, button({ label: "Earlier versions…", onclick: () => showVersions({ name, restored: () => loaded.reload() }) }), button({ label: "Load again", icon: "refresh", onclick: loaded.reload })) })),
      () => (record.value ? null : whileSlow(loaded, 8)),
      () => (error.value ? errorBox(error.value, { title: "The record was not saved", retry: save }) : null),
      () => {
        void fields.value;
        if (!recordType.value) return null;
        return untracked(() => [
          name === null ? div({ class: "field-row" }, div({ class: "field-name" }, label({ for: `${titleID}-name` }, "recordName"), span({ class: "muted small" }, "optional")),
            input({ id: `${titleID}-name`, class: "mono", placeholder: "made by the server", autocomplete: "off", spellcheck: "false", readOnly: () => isSaving.value, value: newName.peek(), oninput: (event) => (newName.value = event.target.value) })) : null,
          fields.value.map((field) => fieldRow({ field, record, turn, draft, problems, change, isReadOnly: Boolean(denied()), name: name ?? null })),
        ]);
      },
      () => (record.value && fields.value.length === 0 ? p({ class: "muted" }, "This type has no fields.") : null),
      () => (record.value?.created ? metadata(record.value) : null)),
    footer({ class: () => ["pane-foot", isDirty.value && "dirty"], hidden: () => loaded.error.value?.code === "NOT_FOUND" && !record.value },
      span({ class: "muted small", role: "status" }, () => denied() ?? (Object.keys(problems.value).length ? `${Object.keys(problems.value)[0]} needs another look` : changed.value.length ? `${plural(changed.value.length, "field")} changed` : "")),
      () => (isDirty.value && name !== null ? button({ label: "Discard", onclick: reset, denied: () => (isSaving.value ? "They are being saved." : null) }) : null),
      button({ label: "Save", kind: "primary", type: "submit", form: `${titleID}-form`, busy: () => isSaving.value, title: "Save (Ctrl+S)",
        denied: () => denied() ?? (name !== null && !isDirty.value ? "Nothing changed." : Object.values(problems.value)[0] ?? null) })));
}

/** @param {any} options */
function fieldRow({ field, record, turn, draft, problems, change, isReadOnly, name }) {
  const id = uniqueID();
  const isEncrypted = parseType(field.type).isEncrypted;
  const version = signal(0);
  let value = draft.peek()[field.name];
  const isSet = signal(value !== undefined && value !== null);
  effect(() => {
    void turn.value;
    const loaded = record.value?.fields[field.name]?.value ?? null;
    if (field.name in untracked(() => draft.value)) return;
    value = loaded;
    isSet.value = value !== null;
    version.value = untracked(() => version.value) + 1;
  });
  const take = (next, problem) => {
    value = next;
    isSet.value = next !== null;
    change(field.name, next, problem);
  };
  return div({ class: () => ["field-row", field.name in draft.value && "changed", problems.value[field.name] && "invalid"] },
    div({ class: "field-name" }, label({ for: id }, field.name), div({ class: "field-kind" }, span({ class: "muted small" }, typeName(field.type)),
      () => (isSet.value && !isReadOnly && !isEncrypted ? html.button({ type: "button", class: "clear", "aria-label": `Clear ${field.name}`, title: "Clear: the field is then not set", onclick: () => { take(null, null); version.value += 1; } }, "clear") : null))),
    div({ class: "field-editor" },
      () => {
        void version.value;
        return untracked(() => isEncrypted
          ? span({ class: "muted" }, acting.peek() ? "•••••• Hidden while you act as a user." : "Encrypted fields are kept in private databases only.")
          : valueEditor({ type: field.type, value, onchange: take, isReadOnly, label: field.name, id, context: { recordType: record.peek().recordType, fieldName: field.name, recordName: name } }));
      },
      () => (problems.value[field.name] ? p({ class: "field-error" }, problems.value[field.name]) : null)));
}

/** @param {any} record */
const metadata = (record) =>
  div({ class: "metadata" }, h3({ "aria-level": () => (isAlone.value ? "2" : null) }, "Metadata"),
    facts([
      ["recordName", copyable(record.recordName)], ["Change tag", code(record.recordChangeTag)],
      ["Created", time(record.created.timestamp)], ["by", copyable(record.created.userRecordName)],
      ["Modified", time(record.modified.timestamp)], ["by", copyable(record.modified.userRecordName)],
      ["Zone", code(record.zoneID?.zoneName ?? "_defaultZone")], ["Parent", record.parent ? code(record.parent.recordName) : null],
    ]));

/** @param {any} record */
const showJSON = (record) => openDialog({ title: record.recordName, class: "wide", content: () => div({ class: "dialog-body" }, pre({ class: "code", tabindex: "0" }, code(JSON.stringify(record, null, 2))),
  button({ label: "Copy", icon: "copy", onclick: () => navigator.clipboard.writeText(JSON.stringify(record, null, 2)).then(() => toast("Copied")) })) });

/**
 * Somebody saved the record meanwhile: for each edited field, mine or the server's.
 * @param {{fields: import("../core/schema.js").Field[], base: any, server: any, draft: Record<string, any>}} options
 *   `base`: the fields as the person saw them
 * @returns {Promise<Record<string, any> | undefined>} what to save on top of the server's record
 */
async function chooseValues({ fields, base, server, draft }) {
  const same = (a, b) => JSON.stringify(a?.value ?? null) === JSON.stringify(b?.value ?? null);
  const names = Object.keys(draft);
  const both = names.filter((name) => !same(base[name], server.fields[name]));
  const mine = signal(new Set(names));
  const shown = (name, value) => value === null || value === undefined ? span({ class: "muted" }, "not set") : value === "" ? span({ class: "muted" }, "empty text") : valueText(value, wireType(fields.find((field) => field.name === name)?.type ?? "STRING"));
  const others = Object.keys({ ...base, ...server.fields }).filter((name) => !names.includes(name) && !same(base[name], server.fields[name]));
  const pick = (name, isMine) => {
    const next = new Set(mine.peek());
    if (isMine) next.add(name);
    else next.delete(name);
    mine.value = next;
  };
  const done = await openForm({
    title: "Somebody else saved this record", submitLabel: "Save these", class: "wide", submit: async () => true,
    body: () => [
      p("It was changed on the server ", time(server.modified.timestamp), both.length ? ". Choose which value each field shall have." : ". Nobody else changed your fields, so both can stay."),
      div({ class: "table-scroll", role: "region", "aria-label": "Values", tabindex: "0" }, html.table({ class: "choices wrapped" },
        html.thead(html.tr(html.th({ scope: "col" }, "Field"), html.th({ scope: "col" }, "Mine"), html.th({ scope: "col" }, "The server’s"))),
        html.tbody(names.map((name) => {
          const group = uniqueID();
          const choice = (isMine, value) => html.td(label({ class: "check" },
            input({ type: "radio", name: group, checked: mine.peek().has(name) === isMine, onchange: () => pick(name, isMine) }), span(shown(name, value))));
          return html.tr(html.th({ scope: "row" }, name), choice(true, draft[name]), choice(false, server.fields[name]?.value));
        })))),
      others.length ? p({ class: "hint" }, `Also changed on the server, and kept: ${others.join(", ")}.`) : null,
    ],
  });
  return done ? Object.fromEntries(names.filter((name) => mine.peek().has(name)).map((name) => [name, draft[name]])) : undefined;
}
