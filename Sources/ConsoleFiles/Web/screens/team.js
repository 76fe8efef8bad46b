/** Settings: the team that works with the console. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { resource } from "../core/resource.js";
import { denial, session } from "../core/session.js";
import { containers } from "../core/context.js";
import { useKeys } from "../core/keys.js";
import { actionsColumn, badge, button, checkbox, empty, field, screenHead, select, textField, timeAgo, toast, view } from "../elements/parts.js";
import { confirm, menuButton, menuItem, openForm } from "../elements/dialog.js";
import { table } from "../elements/table.js";

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
        { label: "Sign-in", cell: (row) => (row.hasPassword ? badge("password", "good") : badge("token or link only")) },
        { label: "Last used", cell: (row) => (row.lastUsed ? span({ class: "muted" }, timeAgo(row.lastUsed)) : span({ class: "unset" }, "–")) },
        { ...actionsColumn, cell: (row) => menuButton({ label: `More on ${row.name}`, icon: "more", kind: "plain", hides: true, items: () => [
          menuItem({ label: "Change role…", icon: "role", denied: denial("PATCH /admin/1/administrators"), onclick: () => edit(row, team.reload) }),
          menuItem({ label: "Remove…", icon: "trash", danger: true, denied: denial("DELETE /admin/1/administrators"), onclick: () => remove(row.name, team.reload) }),
        ] }) },
      ] }),
    }));
}

/** @param {any} member @param {() => void} reload */
function edit(member, reload) {
  const values = { name: "", password: "" };
  const role = signal(member?.role ?? "developer");
  const only = signal(member?.containers ?? null);
  const toggle = (name, isOn) => (only.value = isOn ? [...(only.peek() ?? []), name] : (only.peek() ?? []).filter((each) => each !== name));
  return openForm({
    title: member ? member.name : "Add a member", submitLabel: member ? "Save" : "Add member",
    body: () => [
      member ? null : [textField({ label: "Name", isWide: true, autofocus: true, oninput: (text) => (values.name = text) }),
        textField({ label: "First password", hint: "They can change it after they signed in.", isWide: true, type: "password", autocomplete: "new-password", oninput: (text) => (values.password = text) })],
      field({ label: "Role", isWide: true }, (attributes) => select({ ...attributes, value: role.peek(), options: roles.map(([value, label]) => ({ value, label })), onchange: (next) => (role.value = next) })),
      () => p({ class: "hint" }, `A ${role.value} ${roles.find(([name]) => name === role.value)?.[2]}.`),
      checkbox({ label: "All containers", checked: only.peek() === null, onchange: (isOn) => (only.value = isOn ? null : []) }),
      () => (only.value === null ? null : html.fieldset({ class: "plain" }, html.legend("Only these"), (containers.data.value ?? []).map(({ name }) => checkbox({ label: name, checked: only.peek().includes(name), onchange: (isOn) => toggle(name, isOn) })))),
    ],
    submit: async () => {
      const rights = { role: role.peek(), containers: only.peek() };
      if (member) await call("PATCH /admin/1/administrators", { query: { name: member.name }, body: rights });
      else await call("POST /admin/1/administrators", { body: { name: values.name.trim(), ...rights, ...(values.password ? { password: values.password } : {}) } });
      reload();
      toast(member ? `${member.name} is a ${role.peek()} now` : `Added ${values.name.trim()}`);
    },
  });
}

/** @param {string} name @param {() => void} reload */
const remove = (name, reload) => confirm({
  title: `Remove ${name}?`, action: "Remove", text: "Their sessions and tokens end at once, on every node.",
  submit: async () => {
    await call("DELETE /admin/1/administrators", { query: { name } });
    reload();
    toast(`Removed ${name}`);
  },
});
