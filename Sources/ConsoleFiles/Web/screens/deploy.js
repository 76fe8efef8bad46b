/** Deploy Schema Changes, and Reset Environment: each shows first what would happen. */
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { resource } from "../core/resource.js";
import { navigate, place } from "../core/router.js";
import { denial } from "../core/session.js";
import { schemaState } from "../core/context.js";
import { count, plural } from "../core/format.js";
import { button, empty, screenHead, toast, view } from "../elements/parts.js";
import { confirm } from "../elements/dialog.js";
import { planList } from "../elements/schemabar.js";
import { fieldLabel, indexNames, typeName } from "../core/schema.js";

const { b, code, div, h2, p, section } = html;

/** The parts of a deployment, by the kinds of the server's plan. @type {[string, (kind: string) => boolean][]} */
const parts = [
  ["Security Roles", (kind) => /Role|Grant/.test(kind)],
  ["Indexes", (kind) => kind.endsWith("Index")],
  ["Record Types", () => true],
];

/**
 * What a new type brings: the plan has it as one change, and people are to see what becomes searchable, and for whom.
 * @param {any} change @param {import("../core/schema.js").RecordType[]} types development's
 */
function unfolded(change, types) {
  const type = change.kind === "addType" && types.find(({ name }) => name === change.type);
  if (!type) return [change];
  const fields = type.fields.filter((field) => !field.system);
  return [
    { ...change, change: `add record type ${type.name}`, consequence: fields.map((field) => `${field.name} ${typeName(field.type)}`).join(", ") || "It has no fields." },
    ...type.fields.filter((field) => field.indexes.length).map((field) => ({ kind: "addIndex", change: `add to ${type.name}.${fieldLabel(field.name)}: ${field.indexes.map(({ index }) => indexNames[index]).join(", ")}` })),
    ...type.grants.filter((grant) => grant.permissions.length).map(({ role, permissions }) => ({ kind: "addGrant", change: `let ${role} ${permissions.map((each) => each.toLowerCase()).join(", ")} ${type.name}` })),
  ];
}

/** @param {any[]} changes @param {import("../core/schema.js").RecordType[]} types */
function grouped(changes, types) {
  /** @type {Map<string, any[]>} */ const found = new Map([["Record Types", []], ["Indexes", []], ["Security Roles", []]]);
  for (const change of changes.flatMap((each) => unfolded(each, types))) found.get((parts.find(([, isOne]) => isOne(change.kind)))[0])?.push(change);
  return [...found].filter(([, list]) => list.length > 0);
}

export function deployScreen() {
  const plan = resource((abort) => {
    void schemaState.data.value;
    const query = { container: place.value.container };
    return Promise.all([call("POST /admin/1/schema/deploy", { query: { ...query, dryRun: true }, signal: abort }),
      call("GET /admin/1/schema/state", { query: { ...query, environment: "development" }, signal: abort })]).then(([found, { types }]) => ({ ...found, types }));
  });
  const denied = () => denial("POST /admin/1/schema/deploy")
    ?? (plan.data.value ? plan.data.value.changes.length ? null : "There is nothing to deploy." : "What there is to deploy is not known yet.");
  const deploy = () => {
    const { container } = place.peek();
    const { changes, version } = plan.data.peek();
    return confirm({
      title: "Deploy to production?", action: "Deploy", kind: "primary", typed: container,
      text: div({ class: "stack" }, p(plural(changes.length, "change"), " of the schema of ", b(container), " go to production, all at once. Records are not copied."),
        p({ class: "muted" }, "What is deployed stays: types and fields of production cannot be deleted.")),
      submit: async () => {
        await call("POST /admin/1/schema/deploy", { query: { container, expectedVersion: version } });
        toast("Deployed to production");
        await navigate({ environment: "production", screen: "types", params: {} });
      },
    });
  };
  return section(
    screenHead({ title: "Deploy Schema Changes", detail: "Production gets the types, fields, indexes and roles of development. No records move.",
      actions: [button({ label: "Deploy…", icon: "deploy", kind: "primary", denied, onclick: deploy })] }),
    view(plan, {
      isEmpty: (found) => found.changes.length === 0,
      empty: () => empty({ icon: "check", title: "Production is up to date", text: "It has every type, field, index and role of development." }),
      show: (found) => grouped(found.changes, found.types).map(([name, changes]) => div({ class: "block" }, h2(`${name} `, html.span({ class: "muted" }, count(changes.length))), planList({ changes }))),
    }));
}

export function resetScreen() {
  const plan = resource((abort) => call("POST /admin/1/schema/reset", { query: { container: place.value.container, dryRun: true }, signal: abort }));
  const denied = () => denial("POST /admin/1/schema/reset");
  const reset = () => {
    const { container } = place.peek();
    return confirm({
      title: "Reset development?", action: "Delete everything and reset", typed: container,
      text: p("Every record, zone and token of the development environment of ", b(container), " is deleted for good. Its schema becomes production’s."),
      submit: async () => {
        await call("POST /admin/1/schema/reset", { query: { container, confirm: container } });
        schemaState.reload();
        toast("Development was reset");
        await navigate({ environment: "development", screen: "types", params: {} });
      },
    });
  };
  return section(
    screenHead({ title: "Reset Environment", detail: "Development is emptied, and gets production’s schema. Production does not change.",
      actions: [button({ label: "Reset…", icon: "reset", kind: "danger", denied, onclick: reset })] }),
    view(plan, { rows: 5, show: (found) => [
      div({ class: "notice warn" }, html.div(html.strong(`${found.records === undefined ? "All records" : plural(found.records, "record")} will be deleted`), p("of ", code(found.container), ", development: all users’ private data, too, and all sync and session tokens."))),
      div({ class: "block" }, h2("What becomes of the schema"), found.changes.length ? planList(found) : p({ class: "muted" }, "It stays as it is: production has the same.")),
    ] }));
}
