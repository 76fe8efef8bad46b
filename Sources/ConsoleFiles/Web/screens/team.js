/** Settings: the team that works with the console. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, changed } from "../core/api.js";
import { resource } from "../core/resource.js";
import { denial, reloadSession, session } from "../core/session.js";
import { containers } from "../core/context.js";
import { useKeys } from "../core/keys.js";
import { actionsColumn, badge, button, checkbox, empty, field, screenHead, select, textField, timeAgo, toast, view } from "../elements/parts.js";
import { confirm, menuButton, menuItem, openForm } from "../elements/dialog.js";
import { table } from "../elements/table.js";
import { consoleSessionsOf, endSessions } from "../core/tokens.js";

const { p, section, span, strong } = html;

/** @type {[string, string, string][]} */
const roles = [
  ["viewer", "Viewer", "reads schema, public records, usage and limits"],
  ["developer", "Developer", "also changes development: schema, records, roles, tokens"],
  ["admin", "Admin", "everything, also production, keys, users, limits, the cluster and the team"],
];

export function teamScreen() {
  const team = resource((abort) => call("GET /admin/1/administrators", { signal: abort }).then((answer) => answer.administrators ?? answer));
  const denied = () => denial("POST /admin/1/administrators");
  useKeys([{ key: "n", label: "New member", run: () => !denied() && edit(null, team.reload) }]);
  return section(
    screenHead({ title: "Settings", detail: "The team: who may sign in to this console, and what they may do. The server checks each request.",
      actions: [button({ label: "Add Member", icon: "add", kind: "primary", denied, onclick: () => edit(null, team.reload) })] }),
    view(team, {
      isEmpty: (list) => list.length === 0, empty: () => empty({ icon: "team", title: "Nobody yet" }),
      show: (list) => table({ caption: "Team", key: (row) => row.name, rows: () => list, columns: () => [
        { label: "Name", cell: (row) => [strong(row.name), row.name === session.value?.name ? [" ", badge("you", "accent")] : null] },
        { label: "Role", cell: (row) => span({ title: roles.find(([name]) => name === row.role)?.[2] }, roles.find(([name]) => name === row.role)?.[1] ?? row.role) },
        { label: "Containers", cell: (row) => (row.containers ? row.containers.join(", ") || span({ class: "muted" }, "none") : span({ class: "muted" }, "all")) },
        { label: "Sign-in", cell: (row) => span({ class: "badges" }, row.hasPassword ? badge("password", "good") : row.token ? null : badge("by a link only"), row.token ? badge(["token, made ", timeAgo(row.token.created)]) : null) },
        { label: "Last used", cell: (row) => (row.lastUsed ? span({ class: "muted" }, timeAgo(row.lastUsed)) : span({ class: "unset" }, "–")) },
        { ...actionsColumn, cell: (row) => menuButton({ label: `More on ${row.name}`, icon: "more", kind: "plain", hides: true, items: () => [
          menuItem({ label: "Change role…", icon: "role", denied: denial("PATCH /admin/1/administrators"), onclick: () => edit(row, team.reload) }),
          menuItem({ label: "Set password…", icon: "key", denied: denial("PATCH /admin/1/administrators"), onclick: () => setPassword(row, team.reload) }),
          menuItem({ label: "End sessions…", icon: "log", denied: denial("DELETE /admin/1/tokens"), onclick: () => signOut(row.name) }),
          row.token ? menuItem({ label: "Revoke token…", icon: "trash", danger: true, denied: denial("DELETE /admin/1/tokens"), onclick: () => revoke(row, team.reload) }) : null,
          menuItem({ label: "Remove…", icon: "trash", danger: true, denied: denial("DELETE /admin/1/administrators"), onclick: () => remove(row.name, team.reload) }),
        ] }) },
      ] }),
    }));
}

/** @param {any} member @param {() => void} reload */
function edit(member, reload) {
  const values = { name: "", password: "" };
  const before = { role: member?.role ?? "developer", containers: member?.containers ?? null };
  const [role, only] = [signal(before.role), signal(before.containers)];
  const toggle = (name, isOn) => (only.value = isOn ? [...(only.peek() ?? []), name] : (only.peek() ?? []).filter((each) => each !== name));
  return openForm({
    title: member ? member.name : "Add a member", submitLabel: member ? "Save" : "Add member",
    body: () => [
      member ? null : [textField({ label: "Name", isWide: true, autofocus: true, oninput: (text) => (values.name = text) }),
        textField({ label: "First password", hint: "They change it in the account’s menu after they signed in.", isWide: true, type: "password", autocomplete: "new-password", oninput: (text) => (values.password = text) })],
      field({ label: "Role", isWide: true }, (attributes) => select({ ...attributes, value: role.peek(), options: roles.map(([value, label]) => ({ value, label })), onchange: (next) => (role.value = next) })),
      () => p({ class: "hint" }, `A ${role.value} ${roles.find(([name]) => name === role.value)?.[2]}.`),
      checkbox({ label: "All containers", checked: only.peek() === null, onchange: (isOn) => (only.value = isOn ? null : []) }),
      () => (only.value === null ? null : html.fieldset({ class: "plain" }, html.legend("Only these"), (containers.data.value ?? []).map(({ name }) => checkbox({ label: name, checked: only.peek().includes(name), onchange: (isOn) => toggle(name, isOn) })))),
    ],
    submit: async () => {
      const rights = { role: role.peek(), containers: only.peek() };
      const body = changed(before, rights);
      if (!member) await call("POST /admin/1/administrators", { body: { name: values.name.trim(), ...rights, ...(values.password ? { password: values.password } : {}) } });
      else if (Object.keys(body).length) await call("PATCH /admin/1/administrators", { query: { name: member.name }, body });
      reload();
      toast(member ? `Saved ${member.name}` : `Added ${values.name.trim()}`);
    },
  });
}

/** @param {any} member @param {() => void} reload */
function setPassword(member, reload) {
  const password = signal("");
  return openForm({
    title: `A password for ${member.name}`, submitLabel: "Set password", denied: () => (password.value ? null : "A password is needed."),
    body: () => textField({ label: "New password", hint: "At least 8 characters. Their sessions end, on every node.", isWide: true, type: "password", autocomplete: "new-password", autofocus: true, oninput: (text) => (password.value = text) }),
    submit: async () => {
      await call("PATCH /admin/1/administrators", { query: { name: member.name }, body: { password: password.peek() } });
      reload();
      toast(`The password of ${member.name} was set`);
    },
  });
}

/** @param {string} name */
const signOut = (name) => confirm({
  title: `End the sessions of ${name}?`, action: "End sessions", text: "They are signed out of the console at once, on every node, and may sign in again. A token for the command line stays.",
  submit: async () => {
    await endSessions(await consoleSessionsOf(name));
    toast(`${name} is signed out`);
  },
});

/** @param {any} member @param {() => void} reload */
const revoke = ({ name, token }, reload) => confirm({
  title: `Revoke the token of ${name}?`, action: "Revoke", text: p("Made ", timeAgo(token.created), token.label ? ` (${token.label})` : "", ". Programs that use it are refused at once, on every node."),
  submit: async () => {
    await endSessions([token]);
    reload();
    if (name === session.peek()?.name) await reloadSession();
    toast(`The token of ${name} was revoked`);
  },
});

/** @param {string} name @param {() => void} reload */
const remove = (name, reload) => confirm({
  title: `Remove ${name}?`, action: "Remove", text: "Their sessions and tokens end at once, on every node.",
  submit: async () => {
    await call("DELETE /admin/1/administrators", { query: { name } });
    reload();
    toast(`Removed ${name}`);
  },
});
