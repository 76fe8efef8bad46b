/** Security Roles: what each role may do with each type, and who has the custom ones. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { place, setParams } from "../core/router.js";
import { schema, schemaState } from "../core/context.js";
import { denial, isProduction } from "../core/session.js";
import { edit, edited } from "../core/draft.js";
import { isValidName } from "../core/schema.js";
import { button, errorBox, field, screenHead, textField, toast, view } from "../elements/parts.js";
import { table } from "../elements/table.js";
import { openForm } from "../elements/dialog.js";
import { schemaBar, schemaDenial } from "../elements/schemabar.js";
import { icon } from "../elements/icon.js";

const { code, div, h2, input, p, section, span, strong, td, th, thead, tbody, tr } = html;

const standing = [["_world", "Everybody, also without a sign-in"], ["_icloud", "Everybody who is signed in"], ["_creator", "Who made the record"]];
const permissions = /** @type {const} */ ([["CREATE", "Create"], ["READ", "Read"], ["WRITE", "Write"]]);

export function rolesScreen() {
  const members = resource((abort) => {
    const { container, environment } = place.value;
    return call("GET /admin/1/roles", { query: { container, environment }, signal: abort }).then((answer) => answer.roles);
  });
  const roles = () => [...standing, ...(edited.value?.roles ?? []).map((role) => [role, "Custom role"])];
  return section(
    screenHead({ title: "Security Roles", detail: "Who may create, read and write records of each type in the public database.",
      actions: [button({ label: "New Role", icon: "add", kind: "primary", denied: schemaDenial, onclick: newRole })] }),
    () => (isProduction.value ? div({ class: "notice warn" }, icon("lock"), span("Production’s roles change by Deploy Schema Changes. Members are of each environment, and change here.")) : null),
    view({ ...schemaState, data: schema }, { isSteady: true, show: () => div({ class: "table-scroll block", role: "region", tabindex: "0", "aria-label": "What roles may do" }, () => edited.value &&
      html.table({ class: "matrix" }, html.caption({ class: "hidden-text" }, "What roles may do"),
        thead(tr(th({ scope: "col", rowspan: "2" }, "Record Type"), roles().map(([role, words]) => th({ scope: "colgroup", colspan: "3", title: words }, role))),
          tr({ class: "second" }, roles().map(() => permissions.map(([, words]) => th({ scope: "col" }, words))))),
        tbody(edited.value.types.map((type) => tr(th({ scope: "row" }, type.name), roles().map(([role]) => permissions.map(([permission, words]) => {
          const has = type.grants.find((grant) => grant.role === role)?.permissions.includes(permission) ?? false;
          // CloudKit has no creator of a record that is not there yet.
          return td(role === "_creator" && permission === "CREATE" ? span({ class: "unset" }, "–") : input({ type: "checkbox", checked: has, disabled: Boolean(schemaDenial()), "aria-label": `${role}: ${words} ${type.name}`,
            onchange: (event) => tick(type.name, role, permission, event.target.checked) }));
        }))))))) }),
    section({ class: "block" }, h2("Members of custom roles"), p({ class: "muted" }, "A change counts at once, on all nodes."),
      view(members, {
        isEmpty: (list) => list.length === 0,
        empty: () => p({ class: "muted" }, "There are no custom roles in this environment’s schema."),
        show: (list) => div({ class: "cards" }, list.map((role) => membersCard(role, members.reload))),
      })),
    rightsPart(),
    schemaBar());
}

/** What a user may do, as the server judges it: by the schema that is saved. */
function rightsPart() {
  const user = () => place.value.params.user ?? "";
  const found = resource((abort) => {
    const { container, environment } = place.value;
    void schema.value?.version;
    return call("GET /admin/1/roles/explain", { query: { container, environment, user: user() || undefined }, signal: abort });
  });
  const by = (roles) => roles.length === 0 ? span({ class: "unset" }, "no") : [roles.every((role) => role === "_creator") ? "own records, by " : "by ", roles.map((role, index) => [index ? ", " : "", code(role)])];
  return section({ class: "block" }, h2("What may a user do?"), p({ class: "muted" }, "With records of each type in the public database, by the schema as it is saved. Private data is its owner’s alone."),
    div({ class: "form-grid explain-form" }, field({ label: "User", hint: "Empty: somebody who has not signed in." }, (attributes) => input({ ...attributes, value: user, autocomplete: "off", spellcheck: "false", onchange: (event) => setParams({ user: event.target.value.trim() || null }) }))),
    view(found, { error: (error) => errorBox(error, { title: "No answer", retry: found.reload }), isEmpty: ({ types }) => types.length === 0, empty: () => p({ class: "muted" }, "There are no record types."), show: ({ types }) =>
      table({ caption: "What the user may do", isWrapped: true, key: (type) => type.name, rows: () => types, columns: () => [
        { label: "Record Type", cell: (type) => strong(type.name) },
        { label: "Create", cell: (type) => by(type.create) }, { label: "Read", cell: (type) => by(type.read) }, { label: "Write", cell: (type) => by(type.write) }] }) }));
}

/** @param {string} typeName @param {string} role @param {string} permission @param {boolean} isOn */
function tick(typeName, role, permission, isOn) {
  edit((copy) => {
    const type = copy.types.find((each) => each.name === typeName);
    if (!type) return;
    const grant = type.grants.find((each) => each.role === role);
    const now = (grant?.permissions ?? []).filter((each) => each !== permission);
    type.grants = [...type.grants.filter((each) => each.role !== role), { role, permissions: isOn ? [...now, permission] : now }];
  });
}

function newRole() {
  const name = signal("");
  return openForm({
    title: "New role", submitLabel: "Add role",
    denied: () => (!isValidName(name.value) ? "A name is a letter, then letters, digits or _." : edited.value?.roles.includes(name.value) ? "This role is there already." : null),
    body: () => textField({ label: "Name", hint: "Such as Moderator. Save Changes adds it to the schema; then it can have members.", isWide: true, autofocus: true, oninput: (text) => (name.value = text) }),
    submit: async () => edit((copy) => void copy.roles.push(name.peek())),
  });
}

/** @param {{name: string, members: string[]}} role @param {() => void} reload */
function membersCard({ name, members }, reload) {
  const at = () => ({ container: place.peek().container, environment: place.peek().environment, role: name });
  const denied = () => denial("POST /admin/1/roles/members", { inEnvironment: true });
  const add = () => {
    const [to, user] = [at(), signal("")];
    return openForm({
      title: `Add a member to ${name}`, submitLabel: "Add member", denied: () => (user.value.trim() ? null : "A user’s name is needed."),
      body: () => textField({ label: "User", hint: "The name of a user of this cluster.", isWide: true, autofocus: true, oninput: (text) => (user.value = text) }),
      submit: async () => {
        await call("POST /admin/1/roles/members", { body: { ...to, user: user.peek().trim() } });
        reload();
        toast(`${user.peek().trim()} is a ${name} now`);
      },
    });
  };
  const remove = async (user) => {
    try {
      await call("DELETE /admin/1/roles/members", { query: { ...at(), user } });
      reload();
      toast(`${user} is no ${name} any more`);
    } catch (error) {
      toast(asRequestError(error).message, "bad");
    }
  };
  return div({ class: "card" }, div({ class: "card-head" }, icon("role"), h2(name), button({ label: "Add", icon: "add", kind: "plain", denied, onclick: add })),
    members.length ? html.ul({ class: "plain-list" }, members.map((user) => html.li({ class: "row spread" }, code(user), button({ label: `Remove ${user}`, icon: "close", kind: "plain", hides: true, denied, onclick: () => remove(user) })))) : p({ class: "muted" }, "Nobody yet."));
}
