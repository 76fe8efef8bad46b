/** The schema as text, with line numbers; as Swift code; and its earlier versions. */
import { computed, effect, signal, untracked } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, place } from "../core/router.js";
import { schema, schemaState } from "../core/context.js";
import { useKeys } from "../core/keys.js";
import { actionsColumn, badge, button, empty, errorBox, screenHead, timeAgo, toast, view } from "../elements/parts.js";
import { openDialog, openForm } from "../elements/dialog.js";
import { table } from "../elements/table.js";
import { codeEditor } from "../elements/code.js";
import { planList, schemaDenial } from "../elements/schemabar.js";

const { a, code, div, nav, p, pre, section, span, strong } = html;

const tabs = /** @type {const} */ ([["text", "Text", textTab], ["swift", "Swift", swiftTab], ["history", "History", historyTab]]);

export function schemaTextScreen() {
  const tab = () => tabs.find(([name]) => name === place.value.params.tab) ?? tabs[0];
  const name = computed(() => tab()[0]);
  return () => section({ class: "stack-tabs" }, (void name.value, untracked(() => tab()[2](nav({ class: "tabs", "aria-label": "Views of the schema" }, tabs.map(([each, label]) => a({ href: address({ params: { tab: each } }), "aria-current": () => (name.value === each ? "page" : null) }, label)))))));
}

/** @param {any} tabBar */
function textTab(tabBar) {
  const loaded = resource((abort) => {
    const { container, environment } = place.value;
    void schema.value?.version;
    return call("GET /admin/1/schema", { query: { container, environment }, signal: abort });
  });
  const text = signal("");
  const error = signal(null);
  effect(() => void (text.value = loaded.data.value ?? ""));
  const line = computed(() => Number(/line (\d+)/.exec(error.value?.message ?? "")?.[1] ?? 0));
  const isChanged = computed(() => text.value !== (loaded.data.value ?? ""));
  const apply = async () => {
    if (!isChanged.peek() || schemaDenial()) return;
    const { container, environment } = place.peek();
    const query = { container, environment, expectedVersion: schema.peek()?.version };
    error.value = null;
    try {
      const plan = await call("POST /admin/1/schema", { query: { ...query, dryRun: true }, body: { schema: text.peek() } });
      const isLoss = plan.changes.some((one) => one.losesData);
      await openForm({
        title: "Review changes", class: "wide", kind: isLoss ? "danger" : "primary", submitLabel: isLoss ? "Save, and lose this data" : "Save Changes",
        body: () => plan.changes.length ? planList(plan) : p("The text says what the schema already is."),
        submit: async () => {
          await call("POST /admin/1/schema", { query: { ...query, ...(isLoss ? { allowDataLoss: true } : {}) }, body: { schema: text.peek() } });
          schemaState.reload();
          toast("The schema was saved");
        },
      });
    } catch (failure) {
      error.value = asRequestError(failure);
    }
  };
  useKeys([{ key: "Ctrl+S", label: "Review and save", run: apply }]);
  return [
    screenHead({ title: "Schema Text", detail: "The whole schema in CloudKit’s schema language, as cktool and zonekeeper export it.", actions: [
      button({ label: "Copy", icon: "copy", onclick: () => navigator.clipboard.writeText(text.peek()).then(() => toast("Copied")) }),
      () => (isChanged.value ? button({ label: "Discard", onclick: () => (text.value = loaded.data.peek() ?? "") }) : null),
      button({ label: "Review and Save", kind: "primary", denied: () => schemaDenial() ?? (isChanged.value ? null : "Nothing changed."), onclick: apply }),
    ] }),
    tabBar,
    () => (error.value ? errorBox(error.value, { title: "This is not a schema yet" }) : null),
    view(loaded, { show: () => codeEditor({ label: "Schema", text, line: () => line.value, isReadOnly: () => Boolean(schemaDenial()) }) }),
  ];
}

/** @param {any} tabBar */
function swiftTab(tabBar) {
  const loaded = resource((abort) => {
    const { container, environment } = place.value;
    void schema.value?.version;
    return call("GET /admin/1/schema/code", { query: { container, environment }, signal: abort });
  });
  return [
    screenHead({ title: "Schema Text", detail: "A struct for each record type, over CKRecord; for apps here and on Apple’s platforms.", actions: [
      button({ label: "Copy", icon: "copy", onclick: () => navigator.clipboard.writeText(loaded.data.peek() ?? "").then(() => toast("Copied")) })] }),
    tabBar,
    view(loaded, { show: (text) => pre({ class: "code whole", tabindex: "0", role: "region", "aria-label": "Swift code" }, code(text)) }),
  ];
}

/** @type {Record<string, string>} */
const causes = { change: "changed", reset: "reset to production", growth: "grown by saves", earlier: "the first that is known" };

/** @param {any} tabBar */
function historyTab(tabBar) {
  const loaded = resource((abort) => {
    const { container, environment } = place.value;
    void schema.value?.version;
    return call("GET /admin/1/schema/history", { query: { container, environment }, signal: abort });
  });
  return [
    screenHead({ title: "Schema Text", detail: "Earlier versions of the schema: who made each, and a way back." }),
    tabBar,
    view(loaded, {
      isEmpty: ({ versions }) => versions.length === 0, empty: () => empty({ icon: "audit", title: "No earlier version yet", text: "Each change of the schema is kept from the first one on." }),
      show: ({ version: present, versions }) => table({ caption: "Versions", key: (row) => row.version, rows: () => versions, columns: () => [
        { label: "Version", cell: (row) => [strong(row.version), row.version === present ? [" ", badge("now", "good")] : null] },
        { label: "When", cell: (row) => (row.time ? timeAgo(row.time) : span({ class: "unset", "aria-label": "unknown" }, "–")) },
        { label: "By", cell: (row) => row.actor ?? span({ class: "unset", "aria-label": "unknown" }, "–") },
        { label: "Why", cell: (row) => causes[row.cause] ?? row.cause },
        { label: "Types", class: "number", cell: (row) => row.types },
        { ...actionsColumn, cell: (row) => [button({ label: "Show", kind: "plain", onclick: () => showVersion(row.version) }),
          row.version === present ? null : button({ label: "Restore…", kind: "plain", denied: schemaDenial, onclick: () => restore(row.version) })] },
      ] }),
    }),
  ];
}

/** @param {number} version */
async function showVersion(version) {
  const { container, environment } = place.peek();
  try {
    const text = await call("GET /admin/1/schema", { query: { container, environment, version } });
    await openDialog({ title: `Version ${version}`, class: "wide", content: () => div({ class: "dialog-body" }, pre({ class: "code", tabindex: "0" }, code(text)),
      button({ label: "Copy", icon: "copy", onclick: () => navigator.clipboard.writeText(text).then(() => toast("Copied")) })) });
  } catch (error) {
    toast(asRequestError(error).message, "bad");
  }
}

/** Shows what would change, and then does it. @param {number} version */
async function restore(version) {
  const { container, environment } = place.peek();
  const query = { container, environment, version, expectedVersion: schema.peek()?.version };
  try {
    const plan = await call("POST /admin/1/schema/restore", { query: { ...query, dryRun: true } });
    const isLoss = plan.changes.some((one) => one.losesData);
    await openForm({
      title: `Restore version ${version}`, class: "wide", kind: isLoss ? "danger" : "primary", submitLabel: isLoss ? "Restore, and lose this data" : "Restore",
      denied: () => (plan.changes.length ? null : "The schema is this already."),
      body: () => (plan.changes.length ? planList(plan) : p("The schema is what this version was.")),
      submit: async () => {
        await call("POST /admin/1/schema/restore", { query: { ...query, ...(isLoss ? { allowDataLoss: true } : {}) } });
        schemaState.reload();
        toast(`The schema is as in version ${version}`);
      },
    });
  } catch (error) {
    toast(asRequestError(error).message, "bad");
  }
}
