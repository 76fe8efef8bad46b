/** Subscriptions: what users are told of; all of them, or one user's. */
import { computed, effect, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, place, setParams } from "../core/router.js";
import { denial } from "../core/session.js";
import { useKeys } from "../core/keys.js";
import { count, plural } from "../core/format.js";
import { actionsColumn, badge, button, copyable, empty, errorBox, screenHead, toast, uniqueID, view } from "../elements/parts.js";
import { confirm } from "../elements/dialog.js";
import { table } from "../elements/table.js";

const { a, code, datalist, div, h2, input, label, option, p, section, span } = html;
const pageSize = 100;
/** Pages without a subscription that are passed over before the person is asked to go on. */
const emptyPagesMax = 20;

/** @type {Record<string, string>} */
const kinds = { query: "Query", zone: "Zone", database: "Database" };

/** @param {Record<string, any>} query @param {AbortSignal} [abort] */
const ask = (query, abort) => call("GET /admin/1/subscriptions", { query: { container: place.peek().container, environment: place.peek().environment, ...query }, signal: abort });

/** The next page that has a subscription, or the last one. @param {Record<string, any>} query @param {AbortSignal} [abort] */
async function read(query, abort) {
  let page = await ask({ ...query, limit: pageSize }, abort);
  for (let passed = 0; page.subscriptions.length === 0 && page.next && passed < emptyPagesMax; passed += 1) page = await ask({ ...query, limit: pageSize, after: page.next }, abort);
  return page;
}

export function subscriptionsScreen() {
  const user = computed(() => place.value.params.user ?? "");
  const rows = signal([]);
  const next = signal(undefined);
  const turn = signal(0);
  const reload = () => (turn.value += 1);
  const first = resource((abort) => (void turn.value, read({ user: user.value }, abort)));
  effect(() => {
    rows.value = first.data.value?.subscriptions ?? [];
    next.value = first.data.value?.next;
  });
  const error = signal(null);
  const more = async () => {
    const asked = first.data.peek();
    try {
      const page = await read({ after: next.peek() });
      if (asked !== first.data.peek()) return;
      rows.value = [...rows.peek(), ...page.subscriptions];
      next.value = page.next;
      error.value = null;
    } catch (failure) {
      error.value = asRequestError(failure);
    }
  };
  useKeys([{ key: "/", label: "Choose a user", run: () => document.querySelector("#subscriber")?.focus() }, { key: "r", label: "Load again", run: reload }]);
  return section(
    screenHead({ title: "Subscriptions", detail: "What users are told of: by apps on their devices, in this container and environment.", actions: [button({ label: "Refresh", icon: "refresh", onclick: reload })] }),
    div({ class: "toolbar" }, userField(user)),
    () => (user.value ? null : typeCounts(turn)),
    view(first, {
      isEmpty: () => rows.value.length === 0 && !next.value,
      empty: () => empty({ icon: "bell", title: user.peek() ? `${user.peek()} has no subscription here` : "Nobody has a subscription here", text: "An app makes one with CKDatabase.save(_:), or zonekeeper subscription create." }),
      show: ({ user: name }) => [
        name ? null : div({ class: "block-head" }, h2("All subscriptions")),
        subscriptionTable(rows, name ?? "", reload),
        div({ class: "table-foot" }, span({ role: "status" }, () => `${plural(rows.value.length, "subscription")} shown${next.value ? "" : ", these are all"}`),
          () => (error.value ? errorBox(error.value, { retry: more }) : next.value ? button({ label: "Load more", onclick: more }) : null)),
        p({ class: "hint" }, "Values that a query compares with are the user’s own, and not shown."),
      ],
    }));
}

/** Whose are shown; nobody’s name is everybody. @param {import("../core/signal.js").Signal<string>} user */
function userField(user) {
  // Names that begin as what is typed; only who may see all users is helped so.
  const typed = signal("");
  const people = resource((abort) => (denial("GET /admin/1/users", { everywhere: true }) ? null : call("GET /admin/1/users", { query: { after: typed.value.slice(0, -1), limit: 20 }, signal: abort }).then((answer) => answer.users)));
  const listID = uniqueID();
  return [
    label({ class: "inline" }, span("User"),
      input({ id: "subscriber", list: listID, value: () => user.value, placeholder: "everybody", autocomplete: "off", spellcheck: "false",
        oninput: (event) => (typed.value = event.target.value), onchange: (event) => setParams({ user: event.target.value.trim() }) })),
    datalist({ id: listID }, () => (people.data.value ?? []).map(({ name }) => option({ value: name }))),
    () => (user.value ? button({ label: "Everybody", icon: "close", kind: "plain", onclick: () => setParams({ user: null }) }) : null),
  ];
}

/** @param {import("../core/signal.js").Signal<any[]>} rows @param {string} user whose they are; empty: everybody's @param {() => void} reload */
function subscriptionTable(rows, user, reload) {
  const denied = (row) => denial("DELETE /admin/1/subscriptions", { inEnvironment: true }) ?? (row.user ? null : "The account was deleted. What is left of it goes within two hours.");
  return table({ caption: user ? `Subscriptions of ${user}` : "Subscriptions of all users", key: (row) => `${row.userRecordName} ${row.database} ${row.subscriptionID}`, rows: () => rows.value, isWindowed: true, columns: () => [
    { label: "ID", cell: (row) => copyable(row.subscriptionID) },
    ...(user ? [] : [{ label: "User", class: "brief", cell: (row) => (row.user ? a({ class: "link", href: address({ params: { user: row.user } }), title: `Only those of ${row.user}` }, row.user) : code({ class: "muted" }, row.userRecordName)) }]),
    { label: "Type", cell: typeWords },
    { label: "Compares", cell: (row) => (row.fields?.length ? span({ class: "chips" }, row.fields.map((name) => span({ class: "chip" }, name))) : span({ class: "unset", "aria-label": "nothing" }, "–")) },
    { label: "Fires on", cell: (row) => [(row.firesOn ?? ["create", "update", "delete"]).join(", "), " ", row.firesOnce ? badge("once", "warn") : null] },
    { ...actionsColumn, cell: (row) => [
      button({ label: `Test ${row.subscriptionID}`, icon: "bell", kind: "plain", hides: true, denied: () => denied(row), onclick: () => test(row) }),
      button({ label: `Delete ${row.subscriptionID}`, icon: "trash", kind: "plain", hides: true, denied: () => denied(row), onclick: () => remove(row, reload) }),
    ] },
  ] });
}

/** Its type, and what it is for: of which records, where not of all. @param {any} row */
const typeWords = ({ subscriptionType, database, zone, recordType }) => [badge(kinds[subscriptionType] ?? subscriptionType, subscriptionType === "query" ? "accent" : ""), " ",
  database === "public" ? "Public" : "Private", zone ? [", ", code(zone)] : null, recordType ? [" ", code(recordType)] : null];

/**
 * How many of each type there are: of the users that are counted in a second, and in a minute where somebody asks for that.
 * @param {import("../core/signal.js").Signal<number>} turn
 */
function typeCounts(turn) {
  /** The turn in which somebody asked for that. */
  const whole = signal(-1);
  const counted = resource((abort) => ask({ types: true, seconds: whole.value === turn.value ? 60 : 1 }, abort));
  const problem = () => (counted.error.value ? errorBox(counted.error.value, { retry: counted.reload }) : null);
  return () => {
    const found = counted.data.value;
    if (!found?.types.length) return problem;
    return div({ class: "block" },
      div({ class: "block-head" }, h2("By type"), found.next ? [
        span({ class: "muted", role: "status" }, () => (counted.isLoading.value ? "Counting…" : "Of the users that could be counted in time")),
        button({ label: "Count all", icon: "refresh", busy: () => counted.isLoading.value, onclick: () => (whole.peek() === turn.peek() ? counted.reload() : (whole.value = turn.peek())) })] : null),
      problem,
      table({ caption: "Subscriptions by type", isWrapped: true, key: (type) => `${type.database} ${type.subscriptionType} ${type.recordType ?? ""}`, rows: () => found.types, columns: () => [
        { label: "Type", cell: typeWords },
        { label: "Subscriptions", class: "number", cell: (row) => count(row.subscriptions) }, { label: "Users", class: "number", cell: (row) => count(row.users) },
      ] }));
  };
}

/** Which one a request is about. @param {any} row */
const named = (row) => ({ container: place.peek().container, environment: place.peek().environment, user: row.user, database: row.database, id: row.subscriptionID });

/** @param {any} row */
const test = (row) => confirm({
  title: `Test ${row.subscriptionID}?`, action: "Send test", kind: "primary", text: `${row.user}’s devices are told as if something had happened. The notification says zonekeeperTest; apps that do not look for that take it for a real one.`,
  submit: async () => {
    await call("POST /admin/1/subscriptions/test", { query: named(row) });
    toast(`${row.user} is told by ${row.subscriptionID}`);
  },
});

/** @param {any} row @param {() => void} reload */
const remove = (row, reload) => confirm({
  title: `Delete ${row.subscriptionID}?`, action: "Delete subscription", text: `${row.user} is not told of this any more. Their app is not asked, and may make the subscription again.`,
  submit: async () => {
    await call("DELETE /admin/1/subscriptions", { query: named(row) });
    reload();
    toast(`Deleted ${row.subscriptionID}`);
  },
});
