/** The bar below the screens of the schema: what was edited, Save Changes (which shows first what they do), Discard. */
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { here, place } from "../core/router.js";
import { denial, isProduction } from "../core/session.js";
import { schema, schemaState } from "../core/context.js";
import { baseVersion, discard, edited, edits, isBehind } from "../core/draft.js";
import { schemaText } from "../core/schema.js";
import { useKeys } from "../core/keys.js";
import { count, plural } from "../core/format.js";
import { badge, button, toast } from "./parts.js";
import { confirm, openForm } from "./dialog.js";
import { icon } from "./icon.js";

const { div, li, p, span, strong, ul } = html;

/** Why the schema cannot be edited here; `null` where it can. */
export const schemaDenial = () =>
  isProduction.value ? "Production’s schema changes only by Deploy Schema Changes."
    : (denial("POST /admin/1/schema", { inEnvironment: true }) ?? (schema.value ? null : "The schema is not loaded yet."));

/** How many records a change takes something from, as far as the server says. @param {any} change */
const lost = ({ records, recordsMax }) =>
  records !== undefined ? strong(`: ${plural(records, "record")}`) : recordsMax !== undefined ? strong(`: at most ${plural(recordsMax, "record")}`) : null;

/** The changes of a plan, each with what follows from it. @param {{changes: any[], kept?: any[]}} plan */
export const planList = ({ changes, kept = [] }) =>
  ul({ class: "plan" },
    changes.map((one) => {
      const { change, consequence, losesData } = one;
      return li({ class: losesData ? "loses" : change.startsWith("remove") ? "removes" : "" }, icon(losesData ? "danger" : change.startsWith("remove") ? "trash" : "add"),
        div(span(change[0].toUpperCase() + change.slice(1), lost(one)), consequence ? p({ class: "small" }, consequence) : null));
    }),
    kept.map(({ change }) => li({ class: "kept" }, icon("lock"), div(span("Kept: ", change)))));

/** How the schema of the place is saved as it is edited now; also once another place is shown. */
function importer() {
  const { container, environment } = place.peek();
  const [expectedVersion, body] = [baseVersion.peek(), { schema: schemaText(edited.peek()) }];
  return (/** @type {Record<string, any>} */ query) => call("POST /admin/1/schema", { query: { container, environment, expectedVersion, ...query }, body });
}

/** Shows what the server would do, and does it. */
async function review() {
  if (edits.peek().length === 0) return;
  const [at, importSchema] = [here.peek(), importer()];
  let plan;
  try {
    plan = await importSchema({ dryRun: true });
    if (here.peek() !== at) return;
  } catch (error) {
    await openForm({ title: "The schema cannot be saved like this", submitLabel: "Close", cancelLabel: "Back", submit: async () => true, body: () => p(String((error).message)) });
    return;
  }
  const losses = plan.changes.filter((one) => one.losesData);
  const isLoss = losses.length > 0;
  await openForm({
    title: "Review changes", class: "wide", submitLabel: isLoss ? "Save, and lose this data" : "Save Changes", kind: isLoss ? "danger" : "primary",
    body: () => [p({ class: "muted" }, `Version ${baseVersion.peek()} of the development schema becomes version ${Number(baseVersion.peek()) + 1}, all of this at once.`), planList(plan),
      isLoss ? div({ class: "notice warn" }, icon("danger"), span(losses.length === 1 ? "One of these changes deletes data for good." : `${count(losses.length)} of these changes delete data for good.`)) : null],
    submit: async () => {
      await importSchema(isLoss ? { allowDataLoss: true } : {});
      discard();
      schemaState.reload();
      toast("The schema was saved");
    },
  });
}

export function schemaBar() {
  useKeys([{ key: "Ctrl+S", label: "Review and save the schema", run: review }]);
  return () => edits.value.length === 0 ? null : div({ class: "bar-bottom", role: "region", "aria-label": "Unsaved changes" },
    strong(plural(edits.value.length, "unsaved change")), span({ class: "muted ellipsis" }, edits.value.slice(0, 3).join(", "), edits.value.length > 3 ? "…" : ""),
    () => (isBehind.value ? badge("the schema changed meanwhile", "warn") : null),
    div({ class: "actions" },
      button({ label: "Discard", onclick: () => confirm({ title: "Discard these changes?", action: "Discard", text: ul({ class: "plain-list" }, edits.peek().map((text) => li(text))), submit: async () => discard() }) }),
      button({ label: "Save Changes…", kind: "primary", onclick: () => void review(), denied: schemaDenial })));
}
