/** All containers: what each holds, and a new one. */
import { onCleanup, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, navigate } from "../core/router.js";
import { denial, session } from "../core/session.js";
import { containers } from "../core/context.js";
import { useKeys } from "../core/keys.js";
import { bytes, count, plural } from "../core/format.js";
import { badge, button, checkbox, empty, screenHead, textField, timeAgo, toast, view } from "../elements/parts.js";
import { confirm, menuButton, menuItem, openForm } from "../elements/dialog.js";
import { icon } from "../elements/icon.js";

const { a, article, div, h2, span } = html;

export function containersScreen() {
  const denied = () => denial("POST /admin/1/containers");
  const showsHidden = signal(false);
  const shown = (list) => list.filter((each) => showsHidden.value || !each.hidden);
  useKeys([{ key: "n", label: "New container", run: () => !denied() && create() }]);
  return html.section(
    screenHead({ title: "Containers", detail: "Each app keeps its users, schema and records in a container of its own.",
      actions: [button({ label: "New Container", icon: "add", kind: "primary", denied, onclick: create })] }),
    view(containers, {
      isEmpty: (list) => list.length === 0,
      empty: () => empty({ icon: "container", title: "No container yet", text: "Make one, and an app can keep its records here.", action: button({ label: "New Container", icon: "add", kind: "primary", denied, onclick: create }) }),
      show: (list) => [
        list.some((each) => each.hidden) ? div({ class: "toolbar" }, checkbox({ label: `Show ${plural(list.filter((each) => each.hidden).length, "hidden container")}`, checked: () => showsHidden.value, onchange: (isOn) => (showsHidden.value = isOn) })) : null,
        () => shown(list).length ? div({ class: "cards" }, shown(list).map(card)) : empty({ icon: "container", title: "All containers are hidden", text: "They work as ever; show them with the box above." }),
      ],
    }));
}

/** @param {any} container */
function card({ name, created, users, deleted, restorableUntil, hidden, note = "" }) {
  // Figures are asked for once the card is seen, as there may be many.
  const isSeen = signal(false);
  const observe = (element) => {
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && (isSeen.value = true));
    observer.observe(element);
    onCleanup(() => observer.disconnect());
  };
  const sizes = resource((abort) => (deleted || !isSeen.value ? null : Promise.all(["development", "production"].map((environment) =>
    call("GET /admin/1/usage", { query: { container: name, environment }, signal: abort }).then((answer) => answer.databases.find((each) => each.scope === "public"))))));
  const plan = resource((abort) => (deleted || !isSeen.value || session.peek()?.role !== "admin" ? null : call("POST /admin/1/schema/deploy", { query: { container: name, dryRun: true }, signal: abort })));
  const figures = (words, index) => div({ class: "figure" }, span({ class: "muted small" }, words),
    span(() => { const found = sizes.data.value?.[index]; return found ? plural(found.records, "record") : "–"; }),
    span({ class: "muted small" }, () => { const found = sizes.data.value?.[index]; return found ? bytes(found.bytes) : ""; }));
  const open = address({ container: name, environment: "development", screen: "records", params: {} });
  return article({ class: ["card", deleted && "gone"], ref: observe },
    div({ class: "card-head" }, icon("container"), h2(deleted ? name : a({ href: open, class: "card-link" }, name)),
      menuButton({ label: `More on ${name}`, icon: "more", kind: "plain", hides: true, items: () => deleted
        ? [menuItem({ label: "Restore", icon: "reset", denied: denial("POST /admin/1/containers/restore"), onclick: () => restore(name) })]
        : [menuItem({ label: hidden ? "Show in lists" : "Hide from lists", icon: hidden ? "check" : "close", denied: denial("PATCH /admin/1/containers"), onclick: () => describe(name, { hidden: !hidden }, hidden ? `${name} is shown` : `${name} is hidden for the whole team`) }),
          menuItem({ label: "Note…", icon: "edit", denied: denial("PATCH /admin/1/containers"), onclick: () => editNote(name, note) }),
          menuItem({ label: "Rotate encryption key…", icon: "key", denied: denial("POST /admin/1/containers/keys"), onclick: () => rotate(name) }),
          menuItem({ label: "Delete…", icon: "trash", danger: true, denied: denial("DELETE /admin/1/containers"), onclick: () => remove(name) })] })),
    deleted
      ? div({ class: "muted" }, "Deleted ", timeAgo(deleted), restorableUntil ? [", can be restored; gone ", timeAgo(restorableUntil)] : null)
      : [note ? html.p({ class: "note" }, note) : null, div({ class: "figures" }, figures("Development", 0), figures("Production", 1),
        div({ class: "figure", title: "Users with a session in it" }, span({ class: "muted small" }, "Users"), span(count(users)))),
        div({ class: "card-foot muted small" }, span("made ", timeAgo(created)), hidden ? badge("hidden") : null, () => (plan.data.value?.changes.length ? badge(`${plural(plan.data.value.changes.length, "schema change")} to deploy`, "accent") : null))]);
}

/** @param {string} name @param {Record<string, any>} change @param {string} words */
async function describe(name, change, words) {
  try {
    await call("PATCH /admin/1/containers", { body: { name, ...change } });
    containers.reload();
    toast(words);
  } catch (error) {
    toast(asRequestError(error).message, "bad");
  }
}

/** @param {string} name @param {string} note */
function editNote(name, note) {
  const text = signal(note);
  return openForm({
    title: `Note on ${name}`, submitLabel: "Save",
    body: () => textField({ label: "Note", hint: "For the whole team, on one line.", isWide: true, autofocus: true, maxlength: "200", value: note, oninput: (next) => (text.value = next) }),
    submit: async () => {
      await call("PATCH /admin/1/containers", { body: { name, note: text.peek().trim() } });
      containers.reload();
    },
  });
}

function create() {
  const name = signal("");
  return openForm({
    title: "New container", submitLabel: "Make container",
    denied: () => (name.value.trim() ? null : "It needs a name."),
    body: () => textField({ label: "Name", hint: "Such as iCloud.com.example.food: letters, digits, dots, hyphens. It cannot be changed later.", isWide: true, autofocus: true, value: "iCloud.", oninput: (text) => (name.value = text) }),
    submit: async () => {
      const given = name.peek().trim();
      await call("POST /admin/1/containers", { body: { name: given } });
      containers.reload();
      toast(`Made ${given}`);
      void navigate({ container: given, environment: "development", screen: "types", params: {} });
    },
  });
}

/** @param {string} name */
const remove = (name) => confirm({
  title: `Delete ${name}?`, action: "Delete container", typed: name,
  text: "All its users’ data, public records, tokens and keys stop working at once. It can be restored for seven days; then everything is gone.",
  submit: async () => {
    await call("DELETE /admin/1/containers", { query: { name, confirm: name } });
    containers.reload();
    toast(`Deleted ${name}`);
  },
});

/** @param {string} name */
async function restore(name) {
  await confirm({ title: `Restore ${name}?`, action: "Restore", text: "Its data and credentials work again.", submit: async () => {
    await call("POST /admin/1/containers/restore", { query: { name } });
    containers.reload();
    toast(`Restored ${name}`);
  } });
}

/** @param {string} name */
const rotate = (name) => confirm({
  title: "Rotate the encryption key?", action: "Rotate key", text: `Encrypted fields that are saved in ${name} from now on use a new key. What is there stays readable.`,
  submit: async () => {
    const { key } = await call("POST /admin/1/containers/keys", { query: { container: name } });
    toast(`${name} uses key ${key} now`);
  },
});
