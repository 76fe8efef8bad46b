/** Users: the accounts of the cluster. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, changed } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { place } from "../core/router.js";
import { denial } from "../core/session.js";
import { actAsDenial, openActAs } from "../elements/actas.js";
import { useKeys } from "../core/keys.js";
import { actionsColumn, badge, button, checkbox, empty, errorBox, screenHead, textField, timeAgo, toast, view } from "../elements/parts.js";
import { confirm, menuButton, menuItem, openDialog, openForm } from "../elements/dialog.js";
import { table } from "../elements/table.js";
import { endSessions, sessionsOf } from "../core/tokens.js";

const { div, input, p, section, span, strong } = html;
const pageSize = 100;

export function usersScreen() {
  const from = signal("");
  const rows = signal([]);
  const next = signal(undefined);
  /** @param {string} prefix @param {string | undefined} after @param {AbortSignal} [abort] */
  const ask = async (prefix, after, abort) => beginning(await call("GET /admin/1/users", { query: { after, limit: pageSize }, signal: abort }), prefix);
  const take = (page, isFirst) => {
    rows.value = isFirst ? page.users : [...rows.peek(), ...page.users];
    next.value = page.next;
    return page;
  };
  const first = resource((abort) => ask(from.value, before(from.value), abort).then((page) => (abort.aborted ? page : take(page, true))));
  const moreError = signal(null);
  /** The next page; nothing is taken where something else was asked for meanwhile. */
  const more = async () => {
    try {
      const asked = first.data.peek();
      const page = await ask(from.peek(), next.peek());
      if (asked === first.data.peek()) take(page, false);
      moreError.value = null;
    } catch (error) {
      moreError.value = asRequestError(error);
    }
  };
  const denied = () => denial("POST /admin/1/users");
  useKeys([
    { key: "n", label: "New user", run: () => !denied() && edit(null, first.reload) },
    { key: "/", label: "Search", run: () => document.querySelector("#user-search")?.focus() },
  ]);
  return section(
    screenHead({ title: "Users", detail: "Accounts belong to the cluster; a user may use several containers.",
      actions: [button({ label: "New User", icon: "add", kind: "primary", denied, onclick: () => edit(null, first.reload) })] }),
    div({ class: "toolbar" }, input({ id: "user-search", type: "search", class: "search", "aria-label": "Search by the beginning of a name", placeholder: "Name begins with…", autocomplete: "off", spellcheck: "false", oninput: (event) => (from.value = event.target.value.trim()) })),
    view(first, {
      isEmpty: (page) => page.users.length === 0,
      empty: () => empty({ icon: "user", title: from.peek() ? `No user’s name begins with ${from.peek()}` : "No user yet", text: from.peek() ? "Names are searched by their beginning; capitals count." : "Users sign in to apps with an account. Make one here, or let people sign up." }),
      show: () => [
        table({ caption: "Users", key: (row) => row.name, rows: () => rows.value, columns: () => [
          { label: "Name", cell: (row) => span({ class: "badges" }, strong(row.name), row.lockedUntil ? badge("locked out", "bad") : null) },
          { label: "Person", cell: (row) => [row.givenName, row.familyName].filter(Boolean).join(" ") || span({ class: "unset" }, "–") },
          { label: "Address", cell: (row) => row.email ?? span({ class: "unset" }, "–") },
          { label: "Sign-in", cell: (row) => span({ class: "badges" }, row.hasPassword ? badge("password") : null, row.identity ? badge("provider") : null, !row.hasPassword && !row.identity ? badge("none", "warn") : null, row.discoverable ? badge("discoverable", "accent") : null) },
          { label: "Made", cell: (row) => span({ class: "muted" }, timeAgo(row.created)) },
          { ...actionsColumn, cell: (row) => menuButton({ label: `More on ${row.name}`, icon: "more", kind: "plain", hides: true, items: () => [
            menuItem({ label: "Edit…", icon: "edit", denied: denial("PATCH /admin/1/users"), onclick: () => edit(row, first.reload) }),
            menuItem({ label: "Set password…", icon: "key", denied: denial("POST /admin/1/users/password"), onclick: () => setPassword(row, first.reload) }),
            row.lockedUntil ? menuItem({ label: "Unlock", icon: "lock", denied: denial("POST /admin/1/users/unlock"), onclick: () => unlock(row.name, first.reload) }) : null,
            menuItem({ label: "Sessions…", icon: "log", denied: denial("DELETE /admin/1/tokens"), onclick: () => showSessions(row.name) }),
            place.peek().container ? menuItem({ label: "Act as this user…", icon: "user", denied: actAsDenial(), onclick: () => openActAs(row.name) }) : null,
            menuItem({ label: "Delete…", icon: "trash", danger: true, denied: denial("DELETE /admin/1/users"), onclick: () => remove(row.name, first.reload) }),
          ] }) },
        ] }),
        div({ class: "table-foot" }, () => (moreError.value ? errorBox(moreError.value, { retry: more }) : null), () => (next.value ? button({ label: "Load more", onclick: more }) : null)),
      ],
    }));
}

/** The text that comes just before names that begin so, as pages begin after a name. @param {string} prefix */
const before = (prefix) => prefix ? prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) - 1) + "\u{10ffff}" : undefined;

/** Of a page of users, those whose names begin so; it goes on where its last one does. @param {any} page @param {string} prefix */
const beginning = ({ users, next }, prefix) => ({ users: users.filter(({ name }) => name.startsWith(prefix)), next: users.at(-1)?.name.startsWith(prefix) ? next : undefined });

/** @param {any} user @param {() => void} reload */
function edit(user, reload) {
  const known = { email: user?.email ?? "", givenName: user?.givenName ?? "", familyName: user?.familyName ?? "", discoverable: user?.discoverable ?? false };
  const values = { name: "", password: "", ...known };
  const text = (/** @type {keyof typeof values} */ name, label, rest = {}) => textField({ label, ...rest, value: values[name], oninput: (text) => (values[name] = text) });
  return openForm({
    title: user ? user.name : "New user", submitLabel: user ? "Save" : "Make user",
    body: () => [
      user ? null : div({ class: "form-grid" }, text("name", "Name", { autofocus: true }), text("password", "Password (optional)", { type: "password", autocomplete: "new-password" })),
      div({ class: "form-grid" }, text("givenName", "Given name"), text("familyName", "Family name")),
      text("email", "E-mail address", { type: "email" }),
      checkbox({ label: "Other users may find this user by the address", checked: values.discoverable, onchange: (isOn) => (values.discoverable = isOn) }),
    ],
    submit: async () => {
      const { name, password, ...person } = values;
      const body = Object.fromEntries(Object.entries(user ? changed(known, person) : person).map(([key, value]) => [key, value === "" ? null : value]));
      if (!user) await call("POST /admin/1/users", { body: { name, ...body, ...(password ? { password } : {}) } });
      else if (Object.keys(body).length) await call("PATCH /admin/1/users", { query: { name: user.name }, body });
      reload();
      toast(user ? `Saved ${user.name}` : `Made ${name}`);
    },
  });
}

/** @param {any} user @param {() => void} reload */
function setPassword(user, reload) {
  const password = signal("");
  const ends = signal(true);
  return openForm({
    title: `A password for ${user.name}`, submitLabel: "Set password",
    body: () => [
      textField({ label: "New password", hint: user.hasPassword ? "Empty: the password is taken away." : "", isWide: true, type: "password", autocomplete: "new-password", autofocus: true, oninput: (text) => (password.value = text) }),
      checkbox({ label: "End the user’s sessions", checked: true, onchange: (isOn) => (ends.value = isOn) }),
    ],
    submit: async () => {
      await call("POST /admin/1/users/password", { query: { name: user.name }, body: { password: password.peek() || null, endSessions: ends.peek() } });
      reload();
      toast(`The password of ${user.name} was ${password.peek() ? "set" : "taken away"}`);
    },
  });
}

/** Lets in who is locked out after wrong passwords. @param {string} name @param {() => void} reload */
async function unlock(name, reload) {
  try {
    await call("POST /admin/1/users/unlock", { query: { name } });
    reload();
    toast(`${name} may sign in again`);
  } catch (error) {
    toast(asRequestError(error).message, "bad");
  }
}

/** Where a user is signed in; one session can be ended, or all of them. @param {string} user */
const showSessions = (user) => openDialog({ title: `Sessions of ${user}`, class: "wide", content: () => {
  const found = resource((abort) => sessionsOf(user, abort));
  const end = async (sessions) => {
    try {
      await endSessions(sessions);
      toast(sessions.length === 1 ? "The session ended" : `${user} is signed out everywhere`);
    } catch (error) {
      toast(asRequestError(error).message, "bad");
    }
    found.reload();
  };
  return div({ class: "dialog-body" }, view(found, {
    isEmpty: (sessions) => sessions.length === 0, empty: () => empty({ icon: "user", title: "Not signed in", text: `${user} has no session in any container.` }),
    show: (sessions) => [
      div({ class: "block-head" }, p({ class: "muted" }, "They end at once, on every node."), button({ label: "End all", kind: "danger", onclick: () => end(sessions) })),
      table({ caption: `Sessions of ${user}`, key: (row) => row.id, rows: () => sessions, columns: () => [
        { label: "Container", cell: (row) => strong(row.container) },
        { label: "Device", cell: (row) => row.label || span({ class: "unset" }, "–") },
        { label: "Began by", cell: (row) => (row.kind === "session" ? "an administrator" : "sign-in") },
        { label: "Began", cell: (row) => span({ class: "muted" }, timeAgo(row.created)) },
        { label: "Expires", cell: (row) => span({ class: "muted" }, timeAgo(row.expires)) },
        { ...actionsColumn, cell: (row) => button({ label: `End the session in ${row.container}`, icon: "trash", kind: "plain", hides: true, onclick: () => end([row]) }) },
      ] })],
  }));
} });

/** @param {string} name @param {() => void} reload */
const remove = (name, reload) => confirm({
  title: `Delete ${name}?`, action: "Delete user", typed: name, text: [p("The account goes, with its sessions and its subscriptions. This cannot be undone."),
    p(strong("Its records and preferences stay"), ", in all containers: private ones are counted in Usage, and nobody can reach them any more. To erase them, act as the user and delete them first.")],
  submit: async () => {
    await call("DELETE /admin/1/users", { query: { name } });
    reload();
    toast(`Deleted ${name}`);
  },
});
