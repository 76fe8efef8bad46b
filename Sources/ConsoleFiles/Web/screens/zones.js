/** Zones: of the public database, and of users' private ones; new ones and deletion as that user. */
import { computed, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, listZones, RequestError } from "../core/api.js";
import { acting } from "../core/acting.js";
import { resource } from "../core/resource.js";
import { address, place, setParams } from "../core/router.js";
import { denial } from "../core/session.js";
import { useKeys } from "../core/keys.js";
import { bytes, count, plural } from "../core/format.js";
import { actionsColumn, badge, button, empty, screenHead, select, textField, toast, view } from "../elements/parts.js";
import { confirm, openForm } from "../elements/dialog.js";
import { actAsDenial, openActAs } from "../elements/actas.js";
import { table } from "../elements/table.js";

const { a, code, div, input, p, section, span } = html;
const modifyZones = "POST /database/1/{container}/{environment}/{database}/zones/modify";
const ownName = "_defaultZone";

/** @param {any} at the place as it was asked for @param {string} operationType @param {string} zoneName */
async function modify(at, operationType, zoneName) {
  const { zones: [answer] } = await call(modifyZones, { place: { ...at, database: "private" }, body: { operations: [{ operationType, zone: { zoneID: { zoneName } } }] } });
  if (answer?.serverErrorCode) throw new RequestError(200, answer);
}

export function zonesScreen() {
  const isPrivate = computed(() => place.value.params.db === "private" || Boolean(place.value.params.user));
  const user = computed(() => place.value.params.user ?? (isPrivate.value ? (acting.value?.user ?? "") : ""));
  const isOwn = computed(() => isPrivate.value && acting.value !== null && acting.value.user === user.value);
  const wanted = computed(() => `${place.value.container} ${place.value.environment}`);
  const found = resource((abort) => {
    void wanted.value;
    if (isPrivate.value && !user.value) return null;
    const { container, environment } = place.peek();
    const usage = call("GET /admin/1/usage", { query: { container, environment, zones: true, ...(isPrivate.value ? { user: user.value } : {}) }, signal: abort }).then((page) =>
      page.databases.filter((one) => (isPrivate.value ? one.scope !== "public" : one.scope === "public")).flatMap((one) => one.zones));
    if (!isOwn.value) return usage;
    // A zone without records uses nothing, so the user's own list has more.
    const listed = call(listZones, { place: { container, environment, database: "private" }, signal: abort, body: {} }).then((answer) => answer.zones);
    return Promise.all([usage, listed]).then(([used, zones]) =>
      zones.map(({ zoneID }) => used.find((each) => each.name === zoneID.zoneName) ?? { name: zoneID.zoneName, records: 0, bytes: 0, assetBytes: 0 }));
  });
  const denied = () => !isPrivate.value ? "The public database has its default zone only." : !isOwn.value ? `Act as ${user.value || "a user"} first.` : denial(modifyZones);
  useKeys([{ key: "n", label: "New zone", run: () => !denied() && create(found.reload) }, { key: "r", label: "Load again", run: found.reload }]);
  return section(
    screenHead({ title: "Zones", detail: "Records of a zone are kept together. Only private databases have zones of their own.", actions: [
      () => (isPrivate.value ? button({ label: "New Zone", icon: "add", kind: "primary", denied, onclick: () => create(found.reload) }) : null)] }),
    div({ class: "toolbar" },
      html.label({ class: "inline" }, span("Database"), select({ value: () => (isPrivate.value ? "private" : "public"), options: [{ value: "public", label: "Public" }, { value: "private", label: "Private, of a user" }], onchange: (next) => setParams({ db: next === "private" ? "private" : null, user: null }) })),
      () => isPrivate.value ? html.label({ class: "inline" }, span("User"), input({ value: () => user.value, placeholder: "name", autocomplete: "off", spellcheck: "false", onchange: (event) => setParams({ user: event.target.value.trim(), db: "private" }) })) : null),
    () => isPrivate.value && !isOwn.value ? div({ class: "notice" }, p("Names and sizes only: what is in a private database is its user’s alone. "),
      user.value ? button({ label: `Act as ${user.value}…`, denied: actAsDenial, onclick: () => openActAs(user.peek()) }) : null) : null,
    view(found, {
      isEmpty: (zones) => zones.length === 0, empty: () => empty({ icon: "zones", title: "No zone with data", text: isPrivate.peek() ? "This user has saved nothing here yet." : "The default zone appears with the first record." }),
      show: (zones) => table({ caption: "Zones", key: (row) => row.name, rows: () => zones,
        columns: () => [
          { label: "Zone", cell: (row) => (isOwn.value ? a({ class: "link", href: address({ screen: "records", params: { db: "private", zone: row.name === ownName ? "" : row.name } }) }, code(row.name)) : code(row.name)) },
          { label: "Kind", cell: (row) => (row.name === ownName ? badge("default") : badge("custom", "accent")) },
          { label: "Batches", cell: (row) => (row.name === ownName ? span({ class: "muted" }, "each record alone") : "atomic") },
          { label: "Records", class: "number", cell: (row) => count(row.records) },
          { label: "Data", class: "number", cell: (row) => bytes(row.bytes) },
          { label: "Assets", class: "number", cell: (row) => bytes(row.assetBytes) },
          ...(isOwn.value ? [{ ...actionsColumn, cell: (row) => (row.name === ownName ? null : [a({ class: "link", href: address({ screen: "feed", params: { zone: row.name } }) }, "Changes"), " ", button({ label: `Delete ${row.name}`, icon: "trash", kind: "plain", hides: true, denied: () => denial(modifyZones), onclick: () => remove(row, found.reload) })]) }] : []),
        ] }),
    }));
}

/** @param {() => void} reload */
function create(reload) {
  const [at, name] = [place.peek(), signal("")];
  return openForm({
    title: "New zone", submitLabel: "Make zone", denied: () => (name.value.trim() ? null : "It needs a name."),
    body: () => textField({ label: "Name", hint: `In the private database of ${acting.peek()?.user}; such as my-zone. It cannot be changed later.`, isWide: true, autofocus: true, oninput: (text) => (name.value = text) }),
    submit: async () => {
      await modify(at, "create", name.peek().trim());
      reload();
      toast(`Made zone ${name.peek().trim()}`);
    },
  });
}

/** @param {any} zone @param {() => void} reload */
function remove(zone, reload) {
  const at = place.peek();
  return confirm({
    title: `Delete zone ${zone.name}?`, action: "Delete zone", typed: zone.name,
    text: `Its ${plural(zone.records, "record")} of ${acting.peek()?.user} go with it, on all devices. This cannot be undone.`,
    submit: async () => {
      await modify(at, "delete", zone.name);
      reload();
      toast(`Deleted zone ${zone.name}`);
    },
  });
}
