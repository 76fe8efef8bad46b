/** The frame of all screens: container, environment, navigation, account. */
import { computed, effect, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { RequestError, call, waiting } from "../core/api.js";
import { address, navigate, place } from "../core/router.js";
import { reloadSession, session, take } from "../core/session.js";
import { containers } from "../core/context.js";
import { asRequestError, resource } from "../core/resource.js";
import { forgetTab, hasLetterKeys, keepsInTab, theme } from "../core/store.js";
import { presentKeys, useKeys } from "../core/keys.js";
import { button, checkbox, messages, textField, timeAgo, toast } from "./parts.js";
import { confirm, menuButton, menuGroup, menuItem, openDialog, openForm, showSecret } from "./dialog.js";
import { icon, mark } from "./icon.js";
import { alertBell } from "./alerts.js";
import { actAsDenial, actingBanner, openActAs } from "./actas.js";
import { openPalette } from "./palette.js";
import { groups, screens } from "../screens/all.js";

const { a, div, header, kbd, main, nav, span, strong, ul, li } = html;

/** @param {() => any} content */
export function frame(content) {
  const isNavOpen = signal(false);
  effect(() => {
    void place.value;
    isNavOpen.value = false;
  });
  useKeys([
    { key: "Ctrl+K", label: "Go to a screen, a type or a record", run: openPalette },
    { key: "?", label: "Show the keys", run: showKeys },
    { key: "Escape", label: "Close the navigation", run: () => (isNavOpen.value = false) },
  ]);
  const isWaiting = computed(() => waiting.value.length > 0);
  const main1 = main({ class: "main", id: "main", tabindex: "-1" }, content);
  // Screen readers are told of a new screen by its heading.
  let last = "";
  effect(() => {
    const { screen, container, environment } = place.value;
    const now = `${container}/${environment}/${screen}`;
    if (last && last !== now) requestAnimationFrame(() => {
      if (document.activeElement === document.body || document.activeElement?.closest(".nav")) main1.querySelector("h1")?.focus({ preventScroll: true });
      main1.scrollTop = 0;
    });
    last = now;
  });
  return [
    a({ class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main1.focus(); } }, "Skip to content"),
    div({ class: "frame" },
      header({ class: "top" },
        button({ label: "Navigation", icon: "menu", kind: "plain", hides: true, class: "nav-toggle", "aria-expanded": () => String(isNavOpen.value), onclick: () => (isNavOpen.value = !isNavOpen.peek()) }),
        a({ class: "home", href: address({ container: null, environment: "development", screen: "containers", params: {} }), "aria-label": "Zonekeeper, all containers" }, mark()),
        containerMenu(), () => (place.value.container && screens[place.value.screen]?.needsContainer ? environmentSwitch() : null),
        div({ class: "top-end" },
          button({ label: span({ class: "search-words" }, "Go to…", kbd("Ctrl K")), icon: "search", kind: "plain", class: "search-button", "aria-label": "Go to a screen, a type or a record", title: "Ctrl K", onclick: openPalette }),
          alertBell(),
          button({ label: "Keys and help", icon: "help", kind: "plain", hides: true, onclick: showKeys }),
          accountMenu())),
      actingBanner(),
      () => (isWaiting.value ? div({ class: "waiting", role: "status" }, icon("refresh"), () => `${waiting.value[0]?.message ?? ""} Trying again…`) : null),
      nav({ class: () => ["nav", isNavOpen.value && "open"], "aria-label": "Screens" }, navigation()),
      div({ class: "scrim", "aria-hidden": "true", hidden: () => !isNavOpen.value, onclick: () => (isNavOpen.value = false) }),
      main1),
    messages(),
  ];
}

function containerMenu() {
  return menuButton({
    label: span({ class: "container-name", title: () => place.value.container }, html.bdi(() => place.value.container ?? "All containers")), kind: "plain", class: "container-button", describe: "Containers",
    items: () => [
      () => (containers.data.value ?? []).filter((each) => !each.deleted && (!each.hidden || each.name === place.peek().container)).map(({ name }) =>
        menuItem({ label: name, isOn: name === place.peek().container, href: address({ container: name, screen: placeScreen(), params: {} }) })),
      menuGroup(), place.peek().container ? menuItem({ label: "Act as User…", icon: "user", denied: actAsDenial(), onclick: () => openActAs() }) : null,
      menuItem({ label: "Manage Containers…", icon: "container", href: address({ container: null, environment: "development", screen: "containers", params: {} }) }),
    ],
  });
}

/** The screen to stay on in another container. */
const placeScreen = () => (place.peek().screen === "containers" ? "records" : place.peek().screen);

const environmentSwitch = () =>
  div({ class: "segmented environment", role: "group", "aria-label": "Environment" },
    /** @type {const} */ (["development", "production"]).map((name) =>
      html.button({ type: "button", "aria-pressed": () => String(place.value.environment === name), class: name,
        onclick: () => navigate({ environment: name, params: keptParams() }) }, span({ class: "long" }, name === "production" ? "Production" : "Development"), span({ class: "short", "aria-hidden": "true" }, name === "production" ? "Prod" : "Dev"))));

/** Of the parameters, those that mean the same in the other environment. */
function keptParams() {
  const { type, db } = place.peek().params;
  return { ...(type ? { type } : {}), ...(db ? { db } : {}) };
}

function navigation() {
  const current = computed(() => place.value.screen);
  // Asked for with each screen, and not by itself: a page that nobody uses is to be signed out.
  const health = resource((abort) => (void current.value, call("GET /admin/1/cluster/health", { signal: abort, isRefresh: true })));
  const silent = () => (health.data.value?.nodes ?? []).filter((node) => !node.answers).map((node) => node.id);
  return groups.map(({ label, needsContainer, names }) => () => {
    if (needsContainer && !place.value.container) return null;
    return div({ class: "nav-group" }, strong({ class: "nav-label" }, label),
      ul(names.map((name) => li(a({ href: () => (void place.value, address({ screen: name, params: {} })), class: "nav-item", "aria-current": () => (current.value === name ? "page" : null) },
        icon(screens[name].icon), span(screens[name].title),
        name === "cluster" ? () => (silent().length ? span({ class: "alarm", title: `Node ${silent().join(", ")} does not answer` }, span({ class: "hidden-text" }, ", a node does not answer")) : null) : null)))));
  });
}

function accountMenu() {
  const me = () => session.value;
  return menuButton({
    label: span({ class: "avatar", "aria-hidden": "true" }, () => (me()?.name ?? "?").slice(0, 1).toUpperCase()), kind: "plain", chevron: false, class: "account", title: "Account", describe: "Account", isPanel: true,
    items: () => [
      div({ class: "account-words" }, strong(me()?.name), span({ class: "muted small" }, `${me()?.role} of ${me()?.containers ? `${me()?.containers?.length} containers` : "this cluster"}`)),
      menuGroup("Appearance"),
      div({ class: "segmented whole", role: "group", "aria-label": "Appearance" }, /** @type {const} */ (["system", "light", "dark"]).map((name) =>
        html.button({ type: "button", "aria-pressed": () => String(theme.value === name), onclick: () => (theme.value = name) }, name[0].toUpperCase() + name.slice(1)))),
      menuGroup(),
      button({ label: "Change password…", kind: "plain", onclick: changePassword }),
      button({ label: "Token for the command line…", kind: "plain", onclick: makeToken }),
      button({ label: "Sign out", kind: "plain", onclick: signOut }),
    ],
  });
}

/** Ends the session; nothing that was edited stays in the browser. */
async function signOut() {
  if (keepsInTab() && !(await confirm({ title: "Sign out without saving?", action: "Discard changes", text: "Edits of records or of the schema are not saved yet." }))) return;
  await call("POST /admin/1/console/sign-out", { isSignIn: true }).catch(() => {});
  forgetTab();
  location.assign("/console/");
}

/** The person's own password; all their other sessions end. */
function changePassword() {
  const values = { password: "", again: "" };
  const text = (name, label, rest = {}) => textField({ label, isWide: true, type: "password", autocomplete: "new-password", ...rest, oninput: (text) => (values[name] = text) });
  return openForm({ title: "Change your password", submitLabel: "Change password",
    body: () => [text("password", "New password", { autofocus: true, hint: "At least 8 characters. Your other sessions end, on all nodes." }), text("again", "New password, again")],
    submit: async () => {
      if (values.password !== values.again) throw new RequestError(0, { reason: "The two passwords differ.", serverErrorCode: "NOT_SENT" });
      take(await call("POST /admin/1/console/password", { body: { password: values.password } }));
      toast("Your password was changed");
    } });
}

/** A token by which the person is themselves on the command line; they have one at most. */
async function makeToken() {
  const { name, token } = await reloadSession().catch(() => session.peek());
  let made;
  const isMade = await openForm({ title: "Token for the command line", submitLabel: token ? "Make another" : "Make token",
    body: (close) => [
      html.p(`Programs that have it act as ${name}, with your role. It is shown once; you have one at most.`),
      token ? [html.p("You have one, made ", timeAgo(token.created), token.label ? ` (${token.label})` : "", ". Another takes its place: programs that use the present one are refused at once."),
        div(button({ label: "Revoke it", icon: "trash", kind: "danger", onclick: async () => {
          try {
            await call("DELETE /admin/1/console/token");
            toast("Your token was revoked");
            close();
            await reloadSession();
          } catch (error) {
            toast(asRequestError(error).message, "bad");
          }
        } }))] : null],
    submit: async () => {
      if (token) await call("DELETE /admin/1/console/token").catch((error) => { if (error.status !== 404) throw error; });
      made = await call("POST /admin/1/console/token", { body: { label: "made in the console" } });
    } });
  if (isMade && made) await showSecret({ title: "Your token", text: "Keep it in a file that only you can read, and name that with ZONEKEEPER_ADMIN_TOKEN_FILE.", secret: made.secret });
}

/** The keys that do something where the person is. */
function showKeys() {
  return openDialog({ title: "Keys", content: () => div({ class: "dialog-body" },
    html.dl({ class: "keys" }, presentKeys().map(({ key, label }) => div(html.dt(key.split("+").map((part) => kbd(part === "Ctrl" ? "Ctrl" : part))), html.dd(label))),
      div(html.dt(kbd("↑"), kbd("↓")), html.dd("From row to row; Enter opens, Space selects")), div(html.dt(kbd("←"), kbd("→")), html.dd("Along a row, to what can be done with it"))),
    checkbox({ label: "Single letters do something", checked: hasLetterKeys.peek(), onchange: (isOn) => (hasLetterKeys.value = isOn) })) });
}

