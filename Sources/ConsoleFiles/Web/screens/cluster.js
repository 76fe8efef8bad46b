/** Cluster: nodes, shards and who leads them. */
import { effect, signal } from "../core/signal.js";
import { each, html } from "../core/dom.js";
import { call } from "../core/api.js";
import { every, resource } from "../core/resource.js";
import { denial } from "../core/session.js";
import { ago, bytes, count, milliseconds, plural, share } from "../core/format.js";
import { badge, button, facts, field, meter, screenHead, select, textField, toast, view } from "../elements/parts.js";
import { confirm, menuButton, menuItem, openForm } from "../elements/dialog.js";
import { icon } from "../elements/icon.js";

const { article, div, h2, p, section, span, table, tbody, td, th, thead, tr } = html;

export function clusterScreen() {
  const overview = resource((abort) => call("GET /admin/1/cluster", { signal: abort }));
  const status = resource((abort) => call("GET /admin/1/status", { signal: abort }));
  const health = resource((abort) => call("GET /admin/1/cluster/health", { signal: abort }));
  // The load is what the processors did between two answers.
  let last = {};
  const loads = signal(/** @type {Record<number, number>} */ ({}));
  effect(() => {
    const now = Date.now();
    const next = {};
    const found = { ...loads.peek() };
    for (const node of health.data.value?.nodes ?? []) {
      if (!node.answers) continue;
      const before = last[node.id];
      next[node.id] = { at: now, cpu: node.cpuSeconds };
      if (before && now > before.at && node.cpuSeconds >= before.cpu) found[node.id] = ((node.cpuSeconds - before.cpu) * 1000) / (now - before.at) / node.processors;
    }
    last = next;
    loads.value = found;
  });
  const silent = () => (health.data.value?.nodes ?? []).filter((node) => !node.answers).length;
  const healthOf = (id) => health.data.value?.nodes.find((node) => node.id === id);
  every(() => { overview.reload(); status.reload(); }, 3000);
  every(() => { if (!health.isLoading.peek()) health.reload(); }, 2000);
  const data = () => overview.data.value;
  const nodes = () => (data()?.nodes ?? []);
  const denied = () => denial("POST /admin/1/cluster/nodes");
  return section(
    screenHead({ title: "Cluster", detail: "Nodes, the shards they keep, and who leads each. Refreshed every two seconds.",
      actions: [button({ label: "Add Node", icon: "add", denied, onclick: () => addNode(null, nodes(), overview.reload) })] }),
    view(overview, { isSteady: true, show: () => [
      div({ class: "cards narrow block" },
        each(nodes, (node) => node.id, (node) => nodeCard(node, nodes, overview.reload, healthOf, loads)),
        div({ class: "card quiet" }, div({ class: "card-head" }, () => icon(silent() ? "danger" : "check"), h2("State")), () => facts([
          ["Cluster", data()?.clusterID], ["Nodes", health.data.value ? badge(silent() ? `${silent()} of ${nodes().length} ${silent() === 1 ? "does" : "do"} not answer` : "all answer", silent() ? "bad" : "good") : ""], ["Layout", data()?.settled ? badge("settled", "good") : badge(`${plural(data()?.groupsToSettle ?? 0, "group")} to settle`, "warn")],
          ["Replicas a shard", data()?.replicasPerShard], ["This node", status.data.value ? `${status.data.value.node}, build ${status.data.value.version}` : ""],
          ["Files", status.data.value ? (status.data.value.assets.missing ? badge(`${status.data.value.assets.missing} missing`, "bad") : badge("all there", "good")) : ""]]))),
      section({ class: "block" }, h2("Shards"), p({ class: "muted legend" }, span({ class: "dot leader" }), " leads ", span({ class: "dot voter" }), " votes ", span({ class: "dot learner" }), " learns ", span({ class: "dot none" }), " not here"),
        div({ class: "table-scroll", role: "region", tabindex: "0", "aria-label": "Shards by nodes" }, table({ class: "shards" },
          thead(tr(th({ scope: "col" }, "Group"), () => nodes().map((node) => th({ scope: "col" }, `Node ${node.id}`)), th({ scope: "col" }, "State"))),
          tbody(each(() => data()?.groups ?? [], (group) => group.group, (group) => tr(
            th({ scope: "row" }, () => (group.value.shard === undefined ? "Directory" : `Shard ${group.value.shard}`)),
            () => nodes().map((node) => td(replica(group.value, node.id))),
            td(() => groupState(group.value)))))))),
    ] }));
}

/** @param {any} group @param {number} node */
function replica(group, node) {
  const present = group.present ?? group.desired;
  const role = group.leader === node ? "leader" : present.voters.some((one) => one.node === node) ? "voter" : present.learners.some((one) => one.node === node) ? "learner" : "none";
  const lag = group.lag?.find((one) => one.node === node)?.missingEntries;
  const words = { leader: "leads", voter: "votes", learner: "learns", none: "not here" }[role];
  return [span({ class: ["dot", role], role: "img", "aria-label": words, title: words }), lag ? span({ class: "small warn-text" }, ` ${count(lag)} behind`) : null];
}

/** @param {any} group */
const groupState = (group) =>
  !group.leader ? badge("no leader known", "bad") : !group.settled ? badge(group.waitsFor ?? "moving", "warn") : group.leader !== group.preferredLeader ? badge(`node ${group.preferredLeader} shall lead`, "warn") : badge("settled", "good");

/** @param {import("../core/signal.js").Signal<any>} node @param {() => any[]} nodes @param {() => void} reload @param {(id: number) => any} healthOf @param {any} loads */
function nodeCard(node, nodes, reload, healthOf, loads) {
  const { id } = node.peek();
  return article({ class: "card" },
    div({ class: "card-head" }, icon("cluster"), h2(`Node ${id}`), () => span({ class: "badges" }, nodeState(healthOf(id)), node.value.leaving ? badge("leaving", "warn") : node.value.joined ? null : badge("joining", "accent")),
      menuButton({ label: `More on node ${id}`, icon: "more", kind: "plain", hides: true, items: () => [
        menuItem({ label: "Move its leaders elsewhere…", icon: "sort", denied: denial("POST /admin/1/cluster/leaders"), onclick: () => moveLeaders(id, nodes(), reload) }),
        menuItem({ label: "Replace…", icon: "reset", denied: denial("POST /admin/1/cluster/replace"), onclick: () => addNode(id, nodes(), reload) }),
        menuItem({ label: "Remove…", icon: "trash", danger: true, denied: denial("DELETE /admin/1/cluster/nodes"), onclick: () => removeNode(id, reload) }),
      ] })),
    () => facts([["Clients", node.value.clientURL], ["Peers", node.value.peerAddress], ["Leads", plural(node.value.leads, "group")], ["Keeps", plural(node.value.replicas, "replica")]]),
    () => nodeHealth(healthOf(id), loads.value[id]));
}

/** @param {any} health */
const nodeState = (health) => (!health ? null : !health.answers ? badge("does not answer", "bad") : health.ready ? badge("ready", "good") : badge("not ready", "warn"));

/** @param {any} health @param {number | undefined} load */
function nodeHealth(health, load) {
  if (!health) return null;
  if (!health.answers) return p({ class: "small bad-text" }, health.problem);
  const used = health.diskBytes - health.diskFreeBytes;
  const days = health.certificateExpires ? (health.certificateExpires - Date.now()) / 86400000 : undefined;
  return div({ class: "health" },
    health.obstacle ? p({ class: "small warn-text" }, health.obstacle) : null,
    facts([["Build", health.version || "unknown"], ["Up", ago(Date.now() - health.uptimeSeconds * 1000).replace(/ ago$/, "")], ["Memory", bytes(health.memoryBytes)],
      ["Certificate", days === undefined ? null : span({ class: days < 30 ? "warn-text" : "" }, `${count(Math.max(0, Math.floor(days)))} days left`)],
      ["Clock", health.clockErrorMilliseconds ? badge(`${milliseconds(health.clockErrorMilliseconds)} off`, "warn") : null]]),
    meter({ label: "Processors", used: load ?? 0, limit: 1, text: load === undefined ? "" : `${share(load, 1) || "0 %"} of ${health.processors}` }),
    health.diskBytes ? meter({ label: "Disk", used, limit: health.diskBytes, text: `${bytes(health.diskFreeBytes)} free` }) : null);
}

/** @param {number | null} old the node to replace @param {any[]} nodes @param {() => void} reload */
function addNode(old, nodes, reload) {
  const values = { id: String(Math.max(0, ...nodes.map((node) => node.id)) + 1), peerHost: "", peerPort: "24100", clientURL: "https://" };
  const text = (/** @type {keyof typeof values} */ name, label, rest = {}) => textField({ label, ...rest, value: values[name], oninput: (text) => (values[name] = text.trim()) });
  return openForm({
    title: old === null ? "Add a node" : `Replace node ${old}`, submitLabel: old === null ? "Add node" : "Replace node",
    body: () => [p({ class: "muted" }, "Start the new node with its certificates first; then it is given replicas, in the background."),
      div({ class: "form-grid" }, text("id", "Node’s number", { inputmode: "numeric" }), text("peerHost", "Host for peers", { autofocus: true, placeholder: "db4.example.com" }), text("peerPort", "Port for peers", { inputmode: "numeric" })), text("clientURL", "URL for clients")],
    submit: async () => {
      const body = { id: Number(values.id), peerHost: values.peerHost, peerPort: Number(values.peerPort), clientURL: values.clientURL };
      if (old === null) await call("POST /admin/1/cluster/nodes", { body });
      else await call("POST /admin/1/cluster/replace", { body: { old, ...body } });
      reload();
      toast(old === null ? `Node ${values.id} joins` : `Node ${values.id} takes the place of node ${old}`);
    },
  });
}

/** @param {number} from @param {any[]} nodes @param {() => void} reload */
function moveLeaders(from, nodes, reload) {
  const to = signal("");
  return openForm({
    title: `Move the leaders of node ${from}`, submitLabel: "Move leaders",
    body: () => [p({ class: "muted" }, "Before maintenance: nothing is lost, and clients hardly notice."), field({ label: "To", isWide: true }, (attributes) => select({ ...attributes, value: "", options: [{ value: "", label: "all other nodes" }, ...nodes.filter((node) => node.id !== from).map((node) => ({ value: String(node.id), label: `Node ${node.id}` }))], onchange: (next) => (to.value = next) }))],
    submit: async () => {
      await call("POST /admin/1/cluster/leaders", { body: { from, ...(to.peek() ? { to: Number(to.peek()) } : {}) } });
      reload();
      toast(`The leaders of node ${from} move`);
    },
  });
}

/** @param {number} id @param {() => void} reload */
const removeNode = (id, reload) => confirm({
  title: `Remove node ${id}?`, action: "Remove node", typed: `node ${id}`, text: "Its replicas move to other nodes first; then it leaves. Its number is not used again.",
  submit: async () => {
    await call("DELETE /admin/1/cluster/nodes", { query: { id } });
    reload();
    toast(`Node ${id} leaves`);
  },
});

