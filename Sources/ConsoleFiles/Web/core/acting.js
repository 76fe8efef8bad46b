/** Times for which the person is let in as a user: what the page shows of them. The server judges each request. */
import { computed, signal } from "./signal.js";
import { actAs, call } from "./api.js";
import { now } from "./resource.js";
import { place } from "./router.js";

/**
 * @typedef {{id: string, container: string, environment: string, user: string, userRecordName: string, reason: string,
 *     write: boolean, expires: number, own: boolean}} Acting
 */

/** Not known before the server was asked. */
const all = signal(/** @type {Acting[] | undefined} */ (undefined));
/** @param {{container: string | null, environment: string}} at */
const lasting = (at) => all.value?.find((each) => each.container === at.container && each.environment === at.environment && each.expires > now.value) ?? null;

/** The person's time as a user of the place where the page is; `null` where there is none. */
export const acting = computed(() => lasting(place.value));

/** The ids of all times that last, with spaces between; `undefined` as long as they are not known. */
export const lastingIDs = computed(() => all.value?.filter((each) => each.expires > now.value).map(({ id }) => id).join(" "));

/** Whole minutes that are left of it. */
export const minutesLeft = computed(() => (acting.value ? Math.max(1, Math.ceil((acting.value.expires - now.value) / 60000)) : 0));

let loading = Promise.resolve();
/** Once it is known whether the person acts as a user. */
export const actingKnown = () => loading;

/** Asks the server which there are. */
export function loadActing() {
  loading = load();
  return loading;
}

async function load() {
  const answer = await call("GET /admin/1/act-as", { isSignIn: true }).catch(() => null);
  now.value = Date.now();
  if (answer) all.value = answer.acting.filter((each) => each.own);
}

/** For who is not signed in, or may not act as anybody. */
export const neverActing = () => (all.value = []);

/** @param {{user: string, reason: string, write: boolean}} wish */
export async function beginActing(wish) {
  const { container, environment } = place.peek();
  await call("POST /admin/1/act-as", { body: { container, environment, ...wish } });
  await loadActing();
}

export async function stopActing() {
  const id = acting.peek()?.id;
  if (!id) return;
  await call("DELETE /admin/1/act-as", { query: { id } }).catch((error) => {
    // It ended by itself meanwhile.
    if (error.status !== 404) throw error;
  });
  all.value = all.peek()?.filter((each) => each.id !== id);
}

actAs.id = (at) => {
  const found = all.peek()?.find((each) => each.container === at.container && each.environment === at.environment && each.expires > Date.now());
  return found?.id;
};
actAs.refused = loadActing;
