/** The console: finds out who is signed in, and shows the screen that the address names. */
import { computed, effect, root, untracked } from "./core/signal.js";
import { html, mount } from "./core/dom.js";
import { call, signInAgain } from "./core/api.js";
import { place } from "./core/router.js";
import { actingKnown } from "./core/acting.js";
import { session, take } from "./core/session.js";
import { theme } from "./core/store.js";
import { frame } from "./elements/frame.js";
import { errorBox } from "./elements/parts.js";
import { screens } from "./screens/all.js";
import { askToSignIn, signInScreen } from "./screens/signin.js";
import { asRequestError } from "./core/resource.js";

root(() => {
  effect(() => {
    if (theme.value === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
  });
  effect(() => {
    const { container, environment, screen } = place.value;
    document.documentElement.dataset.environment = container ? environment : "";
    const title = screens[screen]?.title ?? "Zonekeeper";
    document.title = [title, container, container && environment === "production" ? "Production" : "", "Zonekeeper"].filter(Boolean).join(" · ");
  });
});

const app = (document.getElementById("app"));
let isShown = false;

/** Shows the console, or the sign-in where nobody is signed in. */
function show() {
  isShown = true;
  const screenName = computed(() => place.value.screen);
  const where = computed(() => `${place.value.container}/${place.value.environment}/${screenName.value}`);
  mount(app, () => frame(() => {
    void where.value;
    return untracked(() => {
      const screen = screens[screenName.peek()];
      if (!screen) return html.p({ class: "empty" }, "There is no such screen.");
      if (screen.needsContainer && !place.peek().container) return screens.containers.show();
      return screen.show();
    });
  }));
}

signInAgain.ask = askToSignIn;

async function begin() {
  const link = new URLSearchParams(location.hash.slice(1)).get("link");
  if (!link) {
    try {
      take(await call("GET /admin/1/console/me", { isSignIn: true }));
      await actingKnown();
      if (!session.peek()?.needsPassword) return show();
    } catch (error) {
      const failure = asRequestError(error);
      if (!failure.needsSignIn) return void mount(app, () => html.main({ class: "sign-in" }, errorBox(failure, { title: "The console cannot start", retry: () => location.reload() })));
    }
  }
  // The secret goes from the address at once, so that it is in no history.
  if (link) history.replaceState(null, "", location.pathname + location.search);
  mount(app, () => signInScreen({ link, done: () => !isShown && show() }));
}

// A link that is opened where the console is open already changes the fragment only.
addEventListener("hashchange", () => location.hash.startsWith("#link=") && location.reload());
void begin();
