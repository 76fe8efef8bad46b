/** The console: finds out who is signed in, and shows the screen that the address names. */
import { computed, effect, root, untracked } from "./core/signal.js";
import { html, mount } from "./core/dom.js";
import { neverActing } from "./core/acting.js";
import { call, signInAgain } from "./core/api.js";
import { address, place } from "./core/router.js";
import { containers } from "./core/context.js";
import { denial, rightsKnown, session, take } from "./core/session.js";
import { theme } from "./core/store.js";
import { frame } from "./elements/frame.js";
import { empty, errorBox, link, notForRole, screenHead } from "./elements/parts.js";
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
    // What is of the whole server has no environment.
    const isInside = Boolean(container && screens[screen]?.needsContainer);
    document.documentElement.dataset.environment = isInside ? environment : "";
    const title = screens[screen]?.title ?? "Zonekeeper";
    document.title = [title, container, isInside && environment === "production" ? "Production" : "", "Zonekeeper"].filter(Boolean).join(" · ");
  });
});

const app = (document.getElementById("app"));
let isShown = false;

/** What is shown where the place has no screen. @param {string} name @param {string} title @param {string} text */
const missing = (name, title, text) => empty({ icon: name, title, text,
  action: link(address({ container: null, environment: "development", screen: "containers", params: {} }), "All containers", "button") });

/** Why the place has no screen to show, as a title and what to show; `null` where it has. @type {import("./core/signal.js").Signal<[string, () => any] | null>} */
const obstacle = computed(() => {
  const { container, screen: name } = place.value;
  const screen = screens[name];
  if (!screen) return ["There is no such screen", () => missing("search", "Nothing is here", `The address names ${name}, which is no screen of the console.`)];
  const why = screen.asks && denial(...screen.asks);
  if (why) return [screen.title, () => notForRole(why)];
  const list = containers.data.value;
  if (!screen.needsContainer || !container || !list || containers.isLoading.value) return null;
  const found = list.find((each) => each.name === container);
  if (found && !found.deleted) return null;
  const ours = session.value?.containers;
  return [screen.title, () => missing("container", found ? `${container} is deleted` : `There is no container ${container}`,
    found ? "As long as it can be restored, Containers has it." : ours ? `Your role is for ${ours.join(", ")}.` : "Its name may be mistyped.")];
});

/** Shows the console, or the sign-in where nobody is signed in. */
async function show() {
  isShown = true;
  await rightsKnown();
  const screenName = computed(() => place.value.screen);
  const where = computed(() => `${place.value.container}/${place.value.environment}/${screenName.value}`);
  // Somebody else may have made the container that the place names.
  let missed = "";
  root(() => effect(() => {
    const { container } = place.value;
    if (!container || container === missed || !containers.data.value || containers.data.value.some(({ name }) => name === container)) return;
    missed = container;
    untracked(containers.reload);
  }));
  mount(app, () => frame(() => {
    void where.value;
    const found = obstacle.value;
    return untracked(() => {
      if (found) return html.section(screenHead({ title: found[0] }), found[1]());
      const screen = screens[screenName.peek()];
      return screen.needsContainer && !place.peek().container ? screens.containers.show() : screen.show();
    });
  }));
}

signInAgain.ask = askToSignIn;

async function begin() {
  const link = new URLSearchParams(location.hash.slice(1)).get("link");
  if (!link) {
    try {
      take(await call("GET /admin/1/console/me", { isSignIn: true }));
      if (!session.peek()?.needsPassword) return await show();
    } catch (error) {
      const failure = asRequestError(error);
      if (!failure.needsSignIn) return void mount(app, () => html.main({ class: "sign-in" }, errorBox(failure, { title: "The console cannot start", retry: () => location.reload() })));
      neverActing();
    }
  }
  // The secret goes from the address at once, so that it is in no history.
  if (link) history.replaceState(null, "", location.pathname + location.search);
  mount(app, () => signInScreen({ link, done: () => !isShown && show() }));
}

// A link that is opened where the console is open already changes the fragment only.
addEventListener("hashchange", () => location.hash.startsWith("#link=") && location.reload());
void begin();
