/** The schema as text, with line numbers; errors stand at their lines. */
import { computed, effect, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { place } from "../core/router.js";
import { schema, schemaState } from "../core/context.js";
import { useKeys } from "../core/keys.js";
import { button, errorBox, screenHead, toast, view } from "../elements/parts.js";
import { openForm } from "../elements/dialog.js";
import { codeEditor } from "../elements/code.js";
import { planList, schemaDenial } from "../elements/schemabar.js";

const { p, section } = html;

export function schemaTextScreen() {
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
  return section(
    screenHead({ title: "Schema Text", detail: "The whole schema in CloudKit’s schema language, as cktool and zonekeeper export it.", actions: [
      button({ label: "Copy", icon: "copy", onclick: () => navigator.clipboard.writeText(text.peek()).then(() => toast("Copied")) }),
      () => (isChanged.value ? button({ label: "Discard", onclick: () => (text.value = loaded.data.peek() ?? "") }) : null),
      button({ label: "Review and Save", kind: "primary", denied: () => schemaDenial() ?? (isChanged.value ? null : "Nothing changed."), onclick: apply }),
    ] }),
    () => (error.value ? errorBox(error.value, { title: "This is not a schema yet" }) : null),
    view(loaded, { show: () => codeEditor({ label: "Schema", text, line: () => line.value, isReadOnly: () => Boolean(schemaDenial()) }) }));
}
