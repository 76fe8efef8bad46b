/**
 * The address holds the whole view: /console/CONTAINER/ENVIRONMENT/SCREEN?... The container is `~` as long as none is
 * chosen.
 */
import { computed, signal } from "./signal.js";

/**
 * @typedef {{container: string | null, environment: "development" | "production", screen: string,
 *     params: Record<string, string>}} Place
 */

/** @returns {Place} */
function parse() {
  const [container, environment, screen] = location.pathname.split("/").slice(2).map(decodeURIComponent);
  return {
    container: !container || container === "~" ? null : container,
    environment: environment === "production" ? "production" : "development",
    screen: screen || "containers",
    params: Object.fromEntries(new URLSearchParams(location.search)),
  };
}

/** Where the page is. */
export const place = signal(parse());

/** What the page is about, as text: another container, environment, screen, database or zone is something else. */
export const here = computed(() => {
  const { container, environment, screen, params: { db, zone } } = place.value;
  return JSON.stringify([container, environment, screen, db, zone]);
});

/**
 * Where records are at the moment, for what is to be done there wherever the page goes meanwhile: `zone` is for bodies.
 * @returns {{place: {container: string | null, environment: string, database: string},
 *     zone: {zoneID?: {zoneName: string}}}}
 */
export function recordsHere() {
  const { container, environment, params: { db, zone } } = place.peek();
  const database = db === "private" ? db : "public";
  return { place: { container, environment, database }, zone: zone && database === "private" ? { zoneID: { zoneName: zone } } : {} };
}

/** What may hold a change of place back: each answers whether it may go on. @type {Set<() => Promise<boolean>>} */
const guards = new Set();

/** Asks `guard` before the place is left. Returns how to stop that. @param {() => Promise<boolean>} guard */
export function guardLeaving(guard) {
  guards.add(guard);
  return () => guards.delete(guard);
}

/** @param {Partial<Place>} to */
export function address(to) {
  const here = place.peek();
  const container = to.container === undefined ? here.container : to.container;
  const path = [container ?? "~", to.environment ?? here.environment, to.screen ?? here.screen];
  const query = new URLSearchParams(Object.entries(to.params ?? {}).filter(([, value]) => value)).toString();
  return `/console/${path.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

/** @param {string} path */
async function mayLeave(path) {
  // A change of parameters alone leaves nothing.
  if (path.split("?")[0] === location.pathname) return true;
  for (const guard of guards) if (!(await guard())) return false;
  return true;
}

/** @param {string | Partial<Place>} to @param {{replace?: boolean}} [options] */
export async function navigate(to, options) {
  const path = typeof to === "string" ? to : address(to);
  if (!(await mayLeave(path))) return false;
  if (options?.replace) history.replaceState(null, "", path);
  else if (path !== location.pathname + location.search) history.pushState(null, "", path);
  place.value = parse();
  return true;
}

/**
 * Changes parameters of the present screen; an empty one is taken away.
 * @param {Record<string, string | null | undefined>} changes
 * @param {{replace?: boolean}} [options]
 */
export function setParams(changes, options) {
  const params = { ...place.peek().params };
  for (const [name, value] of Object.entries(changes)) {
    if (value) params[name] = value;
    else delete params[name];
  }
  return navigate({ params }, options);
}

addEventListener("popstate", async () => {
  const came = location.pathname + location.search;
  const { container, environment, screen, params } = place.peek();
  if (`/console/${container ?? "~"}/${environment}/${screen}` !== location.pathname) {
    for (const guard of guards) {
      if (await guard()) continue;
      history.pushState(null, "", address({ container, environment, screen, params }));
      return;
    }
  }
  if (came === location.pathname + location.search) place.value = parse();
});

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const link = event.target.closest?.("a[href^='/console']");
  if (!link || link.hasAttribute("target") || link.hasAttribute("download")) return;
  event.preventDefault();
  void navigate((link.getAttribute("href")));
});
