/** Subscriptions: what a user is told of. */
import { computed, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { resource } from "../core/resource.js";
import { address, place, setParams } from "../core/router.js";
import { denial } from "../core/session.js";
import { useKeys } from "../core/keys.js";
import { actionsColumn, badge, button, copyable, empty, screenHead, toast, uniqueID, view } from "../elements/parts.js";
import { confirm } from "../elements/dialog.js";
import { table } from "../elements/table.js";

const { a, code, datalist, div, input, label, option, p, section, span } = html;

/** @type {Record<string, string>} */
const kinds = { query: "Query", zone: "Zone", database: "Database" };

export function subscriptionsScreen() {
  const user = computed(() => place.value.params.user ?? "");
  const denied = () => denial("DELETE /admin/1/subscriptions", { inEnvironment: true });
  const found = resource((abort) => {
    const { container, environment } = place.value;
    return user.value ? call("GET /admin/1/subscriptions", { query: { container, environment, user: user.value }, signal: abort }).then((answer) => answer.subscriptions) : null;
  });
  // Names that begin as what is typed; only who may see all users is helped so.
  const typed = signal("");
  const people = resource((abort) => (denial("GET /admin/1/users", { everywhere: true }) ? null : call("GET /admin/1/users", { query: { after: typed.value.slice(0, -1), limit: 20 }, signal: abort }).then((answer) => answer.users)));
  const listID = uniqueID();
  useKeys([{ key: "/", label: "Choose a user", run: () => document.querySelector("#subscriber")?.focus() }, { key: "r", label: "Load again", run: found.reload }]);
  return section(
    screenHead({ title: "Subscriptions", detail: "What a user is told of: by apps on their devices, in this container and environment.", actions: [button({ label: "Refresh", icon: "refresh", onclick: found.reload, denied: () => (user.value ? null : "Choose a user first.") })] }),
    div({ class: "toolbar" }, label({ class: "inline" }, span("User"),
      input({ id: "subscriber", list: listID, value: () => user.value, placeholder: "name", autocomplete: "off", spellcheck: "false",
        oninput: (event) => (typed.value = event.target.value), onchange: (event) => setParams({ user: event.target.value.trim() }) })),
      datalist({ id: listID }, () => (people.data.value ?? []).map(({ name }) => option({ value: name })))),
    () => user.value ? null : empty({ icon: "bell", title: "Whose subscriptions?", text: "Subscriptions belong to a user. Choose one to see what they are told of.",
      action: div({ class: "badges" }, () => (people.data.value ?? []).slice(0, 8).map(({ name }) => a({ class: "button", href: address({ params: { user: name } }) }, name))) }),
    view(found, {
      isEmpty: (list) => list.length === 0, empty: () => empty({ icon: "bell", title: `${user.peek()} has no subscription here`, text: "An app makes one with CKDatabase.save(_:), or zonekeeper subscription create." }),
      show: (list) => [
        table({ caption: `Subscriptions of ${user.value}`, key: (row) => `${row.database} ${row.subscriptionID}`, rows: () => list, columns: () => [
          { label: "ID", cell: (row) => copyable(row.subscriptionID) },
          { label: "Type", cell: (row) => badge(kinds[row.subscriptionType] ?? row.subscriptionType, row.subscriptionType === "query" ? "accent" : "") },
          { label: "Database", cell: (row) => (row.database === "public" ? "Public" : "Private") },
          { label: "Zone", cell: (row) => (row.zone ? code(row.zone) : span({ class: "muted" }, "all")) },
          { label: "Record Type", cell: (row) => (row.recordType ? code(row.recordType) : span({ class: "muted" }, "all")) },
          { label: "Compares", cell: (row) => (row.fields?.length ? span({ class: "chips" }, row.fields.map((name) => span({ class: "chip" }, name))) : span({ class: "unset", "aria-label": "nothing" }, "–")) },
          { label: "Fires on", cell: (row) => span({ class: "badges" }, (row.firesOn ?? ["create", "update", "delete"]).map((name) => badge(name)), row.firesOnce ? badge("once", "warn") : null) },
          { ...actionsColumn, cell: (row) => button({ label: `Delete ${row.subscriptionID}`, icon: "trash", kind: "plain", hides: true, denied, onclick: () => remove(row, user.peek(), found.reload) }) },
        ] }),
        p({ class: "hint" }, "Values that a query compares with are the user’s own, and not shown."),
      ],
    }));
}

/** @param {any} row @param {string} user @param {() => void} reload */
const remove = (row, user, reload) => confirm({
  title: `Delete ${row.subscriptionID}?`, action: "Delete subscription", text: `${user} is not told of this any more. Their app is not asked, and may make the subscription again.`,
  submit: async () => {
    const { container, environment } = place.peek();
    await call("DELETE /admin/1/subscriptions", { query: { container, environment, user, database: row.database, id: row.subscriptionID } });
    reload();
    toast(`Deleted ${row.subscriptionID}`);
  },
});
