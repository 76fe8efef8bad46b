/** Webhooks: addresses outside the cluster that are told of changes, and how their deliveries went. */
import { computed, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, changed } from "../core/api.js";
import { asRequestError, every, resource } from "../core/resource.js";
import { address, place, setParams } from "../core/router.js";
import { denial } from "../core/session.js";
import { schema } from "../core/context.js";
import { useKeys } from "../core/keys.js";
import { count, plural } from "../core/format.js";
import { actionsColumn, badge, button, checkbox, empty, facts, screenHead, textField, timeAgo, toast, view } from "../elements/parts.js";
import { confirm, menuButton, menuItem, openForm, showSecret } from "../elements/dialog.js";
import { table } from "../elements/table.js";

const { code, div, fieldset, h2, legend, p, section, span } = html;

/** @type {Record<string, [string, "good" | "warn" | "bad"]>} */
const states = { enabled: ["enabled", "good"], disabled: ["disabled", "bad"], leaving: ["being removed", "warn"] };
const at = () => ({ container: place.peek().container, environment: place.peek().environment });

export function webhooksScreen() {
  const mayChange = () => denial("POST /admin/1/webhooks");
  const list = resource((abort) => {
    const { container, environment } = place.value;
    return call("GET /admin/1/webhooks", { query: { container, environment }, signal: abort }).then((answer) => answer.webhooks);
  });
  const chosen = computed(() => place.value.params.webhook ?? "");
  useKeys([{ key: "n", label: "New webhook", run: () => !mayChange() && edit(null, list.reload) }, { key: "r", label: "Load again", run: list.reload }]);
  return section(
    screenHead({ title: "Webhooks", detail: "Addresses outside the cluster that are told of changes, each delivery signed.", actions: [
      button({ label: "New Webhook", icon: "add", kind: "primary", denied: mayChange, onclick: () => edit(null, list.reload) })] }),
    view(list, {
      isEmpty: (hooks) => hooks.length === 0,
      empty: () => empty({ icon: "webhook", title: "No webhook yet", text: "A server of yours is told by one when records change.", action: button({ label: "New Webhook", icon: "add", denied: mayChange, onclick: () => edit(null, list.reload) }) }),
      show: (hooks) => [
        table({ caption: "Webhooks", key: (row) => row.name, rows: () => hooks, current: () => chosen.value || null, href: (row) => address({ params: { webhook: row.name } }), columns: () => [
          { label: "Name", cell: (row) => row.name },
          { label: "Receiver", cell: (row) => code(row.url) },
          { label: "Told of", cell: (row) => span({ class: "badges" }, row.recordTypes.map((name) => badge(name)), row.private ? badge("private zones", "accent") : null) },
          { label: "State", cell: (row) => span({ title: row.reason ?? null }, badge(...(states[row.state] ?? [row.state]))) },
          { label: "Made", cell: (row) => span({ class: "muted" }, timeAgo(row.created)) },
          { ...actionsColumn, cell: (row) => tools(row, list.reload) },
        ] }),
        () => { const hook = hooks.find((each) => each.name === chosen.value); return hook ? deliveries(hook) : p({ class: "hint" }, "Open a webhook to see how its deliveries went."); },
      ],
    }));
}

/** @param {any} row @param {() => void} reload */
const tools = (row, reload) => menuButton({ label: `More on ${row.name}`, icon: "more", kind: "plain", hides: true, items: () => {
  const denied = denial("PATCH /admin/1/webhooks");
  const change = (body, words) => async () => {
    try {
      const answer = await call("PATCH /admin/1/webhooks", { body: { ...at(), name: row.name, ...body } });
      reload();
      if (answer.secret) await tell(answer);
      else toast(words);
    } catch (error) {
      toast(asRequestError(error).message, "bad");
    }
  };
  return [
    menuItem({ label: "Send a test", icon: "deploy", denied: denial("POST /admin/1/webhooks/test", { inEnvironment: true }), onclick: () => test(row.name) }),
    menuItem({ label: "Edit…", icon: "edit", denied, onclick: () => edit(row, reload) }),
    row.state === "disabled" ? menuItem({ label: "Enable", icon: "check", denied, onclick: change({ enabled: true }, `Enabled ${row.name}`) })
      : menuItem({ label: "Disable", icon: "close", denied, onclick: change({ enabled: false }, `Disabled ${row.name}`) }),
    ...(row.secrets > 1 ? [
      menuItem({ label: "Drop the former secret", icon: "key", denied, onclick: change({ secret: "dropFormer" }, "Deliveries are signed with the new secret only") }),
      menuItem({ label: "Drop the new secret", icon: "key", denied, onclick: change({ secret: "dropNewest" }, "Deliveries are signed with the former secret only") }),
    ] : [menuItem({ label: "New secret", icon: "key", denied, onclick: change({ secret: "rotate" }, "") })]),
    menuItem({ label: "Delete…", icon: "trash", danger: true, denied: denial("DELETE /admin/1/webhooks"), onclick: () => remove(row.name, reload) }),
  ];
} });

/** @param {any} made */
const tell = (made) => showSecret({ title: `Secret of ${made.name}`, secret: made.secret, text: made.secrets > 1 ? "Deliveries are signed with both secrets until you drop the former one." : "The receiver verifies deliveries with it." });

/** @param {string} name */
async function test(name) {
  try {
    const answer = await call("POST /admin/1/webhooks/test", { body: { ...at(), name } });
    toast(answer.delivered ? `${name} answered ${answer.status} after ${count(answer.milliseconds)} ms` : `${name} did not take it: ${answer.reason}`, answer.delivered ? "good" : "bad");
  } catch (error) {
    toast(asRequestError(error).message, "bad");
  }
}

/** @param {any} hook @param {() => void} reload */
function edit(hook, reload) {
  const before = { url: hook?.url ?? "", recordTypes: hook?.recordTypes ?? [], fields: hook?.fields ?? [], private: hook?.private ?? false };
  const [name, url] = [signal(hook?.name ?? ""), signal(before.url)];
  const chosen = signal(new Set(before.recordTypes));
  const fields = signal(before.fields.join(", "));
  const isPrivate = signal(before.private);
  const types = () => (schema.value?.types ?? []).map((each) => each.name).filter((each) => each !== "Users");
  let made;
  return openForm({
    title: hook ? `Webhook ${hook.name}` : "New webhook", submitLabel: hook ? "Save" : "Make webhook",
    denied: () => !name.value.trim() ? "It needs a name." : !/^https?:\/\/./.test(url.value.trim()) ? "It needs an address." : chosen.value.size || isPrivate.value ? null : "Choose what it is told of.",
    body: () => [
      hook ? null : textField({ label: "Name", hint: "Letters, digits and any of - _ .", isWide: true, autofocus: true, oninput: (text) => (name.value = text) }),
      textField({ label: "Receiver", hint: "An https address that takes POST requests.", isWide: true, type: "url", value: url.peek(), autofocus: Boolean(hook), placeholder: "https://hooks.example.com/zonekeeper", oninput: (text) => (url.value = text) }),
      () => types().length ? fieldset({ class: "ticks" }, legend("Record types of the public database"), types().map((type) => checkbox({ label: type, checked: chosen.peek().has(type), onchange: (isOn) => {
        const next = new Set(chosen.peek());
        if (isOn) next.add(type);
        else next.delete(type);
        chosen.value = next;
      } }))) : null,
      textField({ label: "Fields to send along", hint: "At most three, with commas between; others are not told.", isWide: true, value: fields.peek(), oninput: (text) => (fields.value = text) }),
      checkbox({ label: "Tell that private zones have changed, and nothing of what is in them", checked: isPrivate.peek(), onchange: (isOn) => (isPrivate.value = isOn) }),
    ],
    submit: async () => {
      const now = { url: url.peek().trim(), recordTypes: [...chosen.peek()], fields: fields.peek().split(",").map((each) => each.trim()).filter(Boolean), private: isPrivate.peek() };
      const body = hook ? changed(before, now) : now;
      if (!hook || Object.keys(body).length) made = await call(hook ? "PATCH /admin/1/webhooks" : "POST /admin/1/webhooks", { body: { ...at(), name: name.peek().trim(), ...body } });
      reload();
      if (hook) toast(`Saved ${hook.name}`);
    },
  }).then((isDone) => (isDone && made?.secret ? tell(made) : undefined));
}

/** @param {string} name @param {() => void} reload */
const remove = (name, reload) => confirm({
  title: `Delete webhook ${name}?`, action: "Delete webhook", typed: place.peek().environment === "production" ? name : null, text: "What waits to be delivered to it goes, too.",
  submit: async () => {
    await call("DELETE /admin/1/webhooks", { query: { ...at(), name } });
    await setParams({ webhook: null });
    reload();
    toast(`Deleted ${name}`);
  },
});

/** @param {any} hook */
function deliveries(hook) {
  const found = resource((abort) => call("GET /admin/1/webhooks/deliveries", { query: { ...at(), name: hook.name }, signal: abort }));
  every(found.reload, 5000);
  return div({ class: "block below" },
    div({ class: "block-head" }, h2(`Deliveries to ${hook.name}`), button({ label: "Refresh", icon: "refresh", kind: "plain", onclick: found.reload })),
    view(found, { show: ({ state, reason, current, deliveries: list }) => [
      facts([["State", [badge(...(states[state] ?? [state])), reason ? ` ${reason}` : ""]],
        ["Now", current ? [plural(current.notifications, "notification"), current.failures ? [`, failed ${plural(current.failures, "time")} since `, timeAgo(current.failingSince), ", again ", timeAgo(current.nextAttempt)] : ""] : span({ class: "muted" }, "nothing waits")]]),
      list.length === 0 ? p({ class: "hint" }, "Nothing was delivered yet.") : table({ caption: `Deliveries to ${hook.name}`, key: (row) => `${row.id} ${row.time}`, rows: () => list, columns: () => [
        { label: "Time", cell: (row) => timeAgo(row.time) },
        { label: "Outcome", cell: (row) => (row.delivered ? badge(`HTTP ${row.status}`, "good") : [badge(row.status ? `HTTP ${row.status}` : "no answer", "bad"), " ", row.reason]) },
        { label: "Notifications", class: "number", cell: (row) => count(row.notifications) },
        { label: "Took", class: "number", cell: (row) => `${count(row.milliseconds)} ms` },
        { label: "ID", cell: (row) => code({ class: "muted" }, row.id) },
      ] }),
    ] }));
}
