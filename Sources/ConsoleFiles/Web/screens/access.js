/** API Access: API tokens and sessions, server-to-server keys, how users sign in. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, changed } from "../core/api.js";
import { asRequestError, resource } from "../core/resource.js";
import { address, place } from "../core/router.js";
import { denial } from "../core/session.js";
import { time } from "../core/format.js";
import { actionsColumn, badge, button, checkbox, copyable, empty, field, notForRole, screenHead, timeAgo, toast, view } from "../elements/parts.js";
import { confirm, openForm, showSecret } from "../elements/dialog.js";
import { table } from "../elements/table.js";
import { useKeys } from "../core/keys.js";
import { allTokens } from "../core/tokens.js";

const { a, code, div, h2, input, nav, p, section, span, strong, textarea } = html;

const tabs = /** @type {const} */ ([["tokens", "API Tokens", apiTokens], ["sessions", "Sessions", sessions], ["keys", "Server-to-Server Keys", serverKeys], ["providers", "Sign-in", providersTab]]);

export function accessScreen() {
  const tab = () => tabs.find(([name]) => name === place.value.params.tab) ?? tabs[0];
  return section(
    screenHead({ title: "API Access", detail: "What apps and servers identify themselves with, and how users sign in." }),
    nav({ class: "tabs", "aria-label": "Kinds of access" }, tabs.map(([name, label]) => a({ href: address({ params: { tab: name } }), "aria-current": () => (tab()[0] === name ? "page" : null) }, label))),
    () => tab()[2]());
}

/** @param {any} values @param {string} name @param {any} rest */
const bound = (values, name, rest = {}) => ({ ...rest, autocomplete: "off", spellcheck: "false", oninput: (event) => (values[name] = event.target.value) });

/** @param {any} token @param {() => void} reload */
const revoke = (token, reload) => confirm({
  title: `Revoke ${token.label || token.id}?`, action: "Revoke", text: token.kind === "api" ? "Apps that use this token are refused at once, on every node." : "The session ends at once, on every node.",
  submit: async () => {
    await call("DELETE /admin/1/tokens", { query: { id: token.id } });
    reload();
    toast("Revoked");
  },
});

function apiTokens() {
  const list = resource((abort) => (allTokens({ container: place.value.container, kind: "api" }, abort).then((tokens) => tokens.filter((token) => token.environment === place.value.environment))));
  const denied = () => denial("POST /admin/1/tokens", { inEnvironment: true });
  const create = async () => {
    const values = { label: "", origins: "", callbackURL: "" };
    let made;
    await openForm({
      title: "New API token", submitLabel: "Make token", body: () => [
        field({ label: "Name", isWide: true }, (attributes) => input({ ...attributes, ...bound(values, "label", { autofocus: true, placeholder: "Web app" }) })),
        field({ label: "Allowed origins", hint: "One a line, such as https://app.example.com; empty: any program.", isWide: true }, (attributes) => textarea({ ...attributes, rows: "2", ...bound(values, "origins") })),
        field({ label: "Sign-in callback", hint: "Where a browser returns after sign-in; empty: the popup tells the page.", isWide: true }, (attributes) => input({ ...attributes, ...bound(values, "callbackURL", { placeholder: "https://app.example.com/signed-in" }) })),
      ],
      submit: async () => {
        const { container, environment } = place.peek();
        const origins = values.origins.split(/\s+/).filter(Boolean);
        made = await call("POST /admin/1/tokens", { body: { kind: "api", container, environment, label: values.label, ...(origins.length ? { origins } : {}), ...(values.callbackURL ? { callbackURL: values.callbackURL } : {}) } });
      },
    });
    if (!made) return;
    list.reload();
    await showSecret({ title: "The new API token", text: "It is shown only now. Apps send it as ckAPIToken.", secret: made.secret });
  };
  /** @param {any} token */
  const change = (token) => {
    const before = { label: token.label, origins: token.origins ?? [] };
    const values = { label: before.label, origins: before.origins.join("\n") };
    return openForm({
      title: `Edit ${token.label || token.id}`, submitLabel: "Save", body: () => [
        field({ label: "Name", isWide: true }, (attributes) => input({ ...attributes, value: values.label, ...bound(values, "label", { autofocus: true }) })),
        field({ label: "Allowed origins", hint: "One a line; empty: any program. It holds at once, on every node.", isWide: true }, (attributes) => textarea({ ...attributes, rows: "3", value: values.origins, ...bound(values, "origins") })),
      ],
      submit: async () => {
        const body = changed(before, { label: values.label, origins: values.origins.split(/\s+/).filter(Boolean) });
        if (Object.keys(body).length) await call("PATCH /admin/1/tokens", { query: { id: token.id }, body });
        list.reload();
        toast("Saved");
      },
    });
  };
  useKeys([{ key: "n", label: "New API token", run: () => !denied() && create() }]);
  return tokenTable(list, "API tokens", [
    { label: "Name", cell: (row) => strong(row.label || "unnamed") },
    { label: "Id", cell: (row) => copyable(row.id) },
    { label: "Origins", cell: (row) => (row.origins?.length ? row.origins.join(", ") : span({ class: "muted" }, "any")) },
    { label: "Callback", cell: (row) => row.callbackURL ?? span({ class: "unset" }, "–") },
    ...known,
  ], () => [button({ label: "New API Token", icon: "add", kind: "primary", denied, onclick: create })], "An app names its container with an API token.", change);
}

function sessions() {
  const list = resource((abort) => allTokens({ container: place.value.container, kind: "session" }, abort));
  return tokenTable(list, "Sessions", [
    { label: "User", cell: (row) => strong(row.user) },
    { label: "Id", cell: (row) => copyable(row.id) },
    { label: "Label", cell: (row) => row.label || span({ class: "unset" }, "–") },
    { label: "Expires", cell: (row) => (row.expires ? span({ title: time(row.expires) }, timeAgo(row.expires)) : "never") },
  ], () => [], ["Sessions that administrators made for programs, with ", code("zonekeeper token create --session"), "."]);
}

/** Who made a token or a key, and when it was used last, as far as that is known. @type {any[]} */
const known = [
  { label: "Last used", cell: (row) => (row.lastUsed ? span({ class: "muted" }, timeAgo(row.lastUsed)) : span({ class: "unset", "aria-label": "unknown" }, "–")) },
  { label: "By", cell: (row) => (row.maker ? span({ class: "muted" }, row.maker.replace(/^administrator /, "").replace(" (console)", "")) : span({ class: "unset", "aria-label": "unknown" }, "–")) },
];

/**
 * @param {any} list @param {string} caption @param {any[]} columns @param {() => any[]} actions @param {any} why
 * @param {(row: any) => any} [change]
 */
const tokenTable = (list, caption, columns, actions, why, change) => [
  () => (list.data.value?.length ? div({ class: "block-head" }, p({ class: "muted" }, why), div({ class: "actions" }, actions())) : null),
  view(list, {
    isEmpty: (tokens) => tokens.length === 0, empty: () => empty({ icon: "key", title: `No ${caption[0].toLowerCase() === "a" ? caption : caption.toLowerCase()} yet`, text: why, action: actions() }),
    show: (tokens) => table({ caption, key: (row) => row.id, rows: () => tokens, columns: () => [...columns,
      { label: "Made", cell: (row) => span({ class: "muted" }, timeAgo(row.created)) },
      { ...actionsColumn, cell: (row) => [change ? button({ label: "Edit", icon: "edit", kind: "plain", denied: () => denial("PATCH /admin/1/tokens", { inEnvironment: true }), onclick: () => change(row) }) : null, button({ label: "Revoke", icon: "trash", kind: "plain", denied: () => denial("DELETE /admin/1/tokens", { inEnvironment: true }), onclick: () => revoke(row, list.reload) })] }] }),
  })];

function serverKeys() {
  const list = resource((abort) => {
    const { container, environment } = place.value;
    return call("GET /admin/1/keys", { signal: abort }).then((answer) => answer.keys.filter((key) => key.container === container && key.environment === environment));
  });
  const denied = () => denial("POST /admin/1/keys", { inEnvironment: true });
  const create = () => {
    const values = { label: "", user: "", publicKey: "" };
    return openForm({
      title: "New server-to-server key", class: "wide", submitLabel: "Add key", body: () => [
        p({ class: "hint" }, "Make a key on the server: ", code("openssl ecparam -name prime256v1 -genkey -noout -out key.pem; openssl ec -in key.pem -pubout")),
        div({ class: "form-grid" },
          field({ label: "Name" }, (attributes) => input({ ...attributes, ...bound(values, "label", { autofocus: true }) })),
          field({ label: "User", hint: "Requests of the key are this user’s." }, (attributes) => input({ ...attributes, ...bound(values, "user") }))),
        field({ label: "Public key, PEM", isWide: true }, (attributes) => textarea({ ...attributes, rows: "6", class: "mono", ...bound(values, "publicKey", { placeholder: "-----BEGIN PUBLIC KEY-----" }) })),
      ],
      submit: async () => {
        const { container, environment } = place.peek();
        await call("POST /admin/1/keys", { body: { container, environment, ...values } });
        list.reload();
        toast("The key is known");
      },
    });
  };
  return [
    div({ class: "block-head" }, p({ class: "muted" }, "Servers sign their requests for public data with a key."), div({ class: "actions" }, button({ label: "New Key", icon: "add", kind: "primary", denied, onclick: create }))),
    view(list, { isEmpty: (keys) => keys.length === 0, empty: () => empty({ icon: "key", title: "No server keys yet" }),
      show: (keys) => table({ caption: "Server-to-server keys", key: (row) => row.id, rows: () => keys, columns: () => [
        { label: "Name", cell: (row) => strong(row.label || "unnamed") }, { label: "Key ID", cell: (row) => copyable(row.id, `${row.id.slice(0, 16)}…`) }, { label: "User", cell: (row) => row.user },
        { label: "Made", cell: (row) => span({ class: "muted" }, timeAgo(row.created)) },
        { ...actionsColumn, cell: (row) => button({ label: "Revoke", icon: "trash", kind: "plain", denied: () => denial("DELETE /admin/1/keys", { inEnvironment: true }), onclick: () => confirm({
          title: `Revoke ${row.label || row.id}?`, action: "Revoke", text: "Requests signed with this key are refused at once, on every node.",
          submit: async () => { await call("DELETE /admin/1/keys", { query: { id: row.id } }); list.reload(); toast("Revoked"); } }) }) },
      ] }) })];
}

function providersTab() {
  const denied = denial("GET /admin/1/providers", { everywhere: true });
  if (denied) return notForRole(denied);
  const list = resource((abort) => call("GET /admin/1/providers", { signal: abort }).then((answer) => answer.providers));
  const signUp = resource((abort) => call("GET /admin/1/sign-up", { signal: abort }));
  const setOpen = async (open) => {
    try {
      await call("PATCH /admin/1/sign-up", { body: { open } });
      toast(open ? "Anybody may make an account now" : "Nobody may make an account for themselves now");
    } catch (error) {
      toast(asRequestError(error).message, "bad");
    }
    signUp.reload();
  };
  const create = () => {
    const values = { name: "", issuer: "", clientID: "", clientSecret: "" };
    const allows = signal(false);
    return openForm({
      title: "Add an identity provider", submitLabel: "Add", body: () => [
        field({ label: "Name", isWide: true }, (attributes) => input({ ...attributes, ...bound(values, "name", { autofocus: true }) })),
        field({ label: "Issuer", hint: "An OpenID Connect issuer’s address.", isWide: true }, (attributes) => input({ ...attributes, ...bound(values, "issuer", { placeholder: "https://id.example.com" }) })),
        field({ label: "Client ID", isWide: true }, (attributes) => input({ ...attributes, ...bound(values, "clientID") })),
        field({ label: "Client secret", isWide: true }, (attributes) => input({ ...attributes, type: "password", ...bound(values, "clientSecret") })),
        checkbox({ label: "A first sign-in makes an account", checked: false, onchange: (isOn) => (allows.value = isOn) }),
      ],
      submit: async () => {
        await call("POST /admin/1/providers", { body: { name: values.name, issuer: values.issuer, clientID: values.clientID, ...(values.clientSecret ? { clientSecret: values.clientSecret } : {}), allowsSignUp: allows.peek() } });
        list.reload();
        toast(`Users can sign in with ${values.name}`);
      },
    });
  };
  return [
    div({ class: "block" }, h2("Sign-up"), p({ class: "muted" }, "For the whole cluster: whether people may make accounts for themselves."),
      view(signUp, { rows: 1, show: ({ open }) => checkbox({ label: "Anybody may make an account", checked: open, disabled: Boolean(denial("PATCH /admin/1/sign-up")), onchange: setOpen }) })),
    div({ class: "block-head" }, div(h2("Identity providers"), p({ class: "muted" }, "OpenID Connect issuers whose users may sign in, in all containers.")), button({ label: "Add Provider", icon: "add", denied: () => denial("POST /admin/1/providers"), onclick: create })),
    view(list, { isEmpty: (found) => found.length === 0, empty: () => empty({ icon: "lock", title: "No identity provider", text: "Users sign in with the name and password of their account." }),
      show: (found) => table({ caption: "Identity providers", key: (row) => row.name, rows: () => found, columns: () => [
        { label: "Name", cell: (row) => strong(row.name) }, { label: "Issuer", cell: (row) => row.issuer }, { label: "Client ID", cell: (row) => code(row.clientID) },
        { label: "Sign-up", cell: (row) => (row.allowsSignUp ? badge("allowed", "good") : badge("known users only")) },
        { ...actionsColumn, cell: (row) => button({ label: "Remove", kind: "plain", denied: () => denial("DELETE /admin/1/providers"), onclick: () => confirm({
          title: `Remove ${row.name}?`, action: "Remove", text: "Its users cannot sign in any more; their accounts stay.", submit: async () => { await call("DELETE /admin/1/providers", { query: { name: row.name } }); list.reload(); toast("Removed"); } }) }) },
      ] }) })];
}
