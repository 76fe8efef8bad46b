/** Requests to the node that the page came from, each as `/openapi.json` describes it. */
import { signal } from "./signal.js";
import { place } from "./router.js";

/** A request that failed: with the server's code and reason, and the request's id. */
export class RequestError extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body) {
    super(body?.reason ?? "The server gave no reason.");
    this.status = status;
    this.code = body?.serverErrorCode ?? (status ? `HTTP ${status}` : "NO_ANSWER");
    this.requestID = body?.uuid;
    /** @type {number | undefined} */ this.retryAfter = body?.retryAfterMilliseconds;
    this.body = body;
  }
  /** Whether the session ended, so that the same request can succeed after another sign-in. */
  get needsSignIn() {
    return this.status === 401 || this.status === 421;
  }
  /** Whether this needs a sign-in of the last minutes. */
  get needsFreshSignIn() {
    return this.body?.needsFreshSignIn === true;
  }
}

/** The operations on records and zones, of the database and zone that the address names. */
export const [queryRecords, lookupRecords, modifyRecords, recordVersions, listZones] = [
  "POST /database/1/{container}/{environment}/{database}/records/query",
  "POST /database/1/{container}/{environment}/{database}/records/lookup",
  "POST /database/1/{container}/{environment}/{database}/records/modify",
  "POST /database/1/{container}/{environment}/{database}/records/versions",
  "POST /database/1/{container}/{environment}/{database}/zones/list",
];

/** The session's token against forged requests; it is in memory only. */
export const csrfToken = signal("");

/**
 * The person's time as a user of a place, which requests for its data name; acting.js sets it. `refused` is told where
 * the server may have ended it.
 * @type {{id: (at: any) => string | undefined, refused: () => void}}
 */
export const actAs = { id: () => undefined, refused: () => {} };

/** Whether what is asked for now is asked by the page itself, to be up to date: the log of requests marks it. */
let isRefresh = false;

/** Runs what reloads something, and marks the requests that come of it. @param {() => void} run */
export function asRefresh(run) {
  isRefresh = true;
  run();
  // What follows from it runs in a microtask that was queued before this one.
  queueMicrotask(() => (isRefresh = false));
}

/** How the page asks for another sign-in; app.js sets it. @type {{ask: (isFresh: boolean) => Promise<void>}} */
export const signInAgain = { ask: () => Promise.reject(new Error("not ready")) };

/**
 * Finds out whether another tab began another session, which all tabs share; session.js sets it. `isTaken` says whether
 * the page has the token of the session now, in place of the one that a request was sent with.
 * @type {{isTaken: (sent: string) => Promise<boolean>}}
 */
export const otherTab = { isTaken: () => Promise.resolve(false) };

/**
 * @typedef {{query?: Record<string, any>, body?: any, signal?: AbortSignal, isSignIn?: boolean, key?: string, isRefresh?: boolean,
 *     place?: {container: string | null, environment: string, database?: string}}} Options
 */

/**
 * Requests for records go to the database and the zone that the address names, unless they say another.
 * @param {string} path @param {Options} options @returns {Options}
 */
function atPlace(path, options) {
  const { db, zone } = place.peek().params;
  if (!path.includes("{database}") || options.place?.database || db !== "private") return options;
  return { ...options, place: { .../** @type {any} */ (options.place), database: "private" }, body: zone ? { zoneID: { zoneName: zone }, ...options.body } : options.body };
}

/** @param {string} path @param {Options} options */
function url(path, { query, place }) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) =>
    encodeURIComponent(({ database: "public", ...place })[name]));
  const entries = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString().replaceAll("+", "%20");
  return search ? `${filled}?${search}` : filled;
}

/** Where an operation is asked for, such as a stream of events. @param {string} operation @param {Options} options */
export const addressOf = (operation, options) => url(operation.split(" ")[1], options);

/** A key under which a request is applied once, however often it is sent: a UUID of version 7. */
export function newKey() {
  const time = Date.now().toString(16).padStart(12, "0");
  const rest = crypto.randomUUID();
  return `${time.slice(0, 8)}-${time.slice(8)}-7${rest.slice(15)}`;
}

/** @param {string} method @param {string} address @param {Options} options */
async function send(method, address, { body, signal: abort, key, isRefresh: isMarked, place: at }) {
  /** @type {Record<string, string>} */ const headers = {};
  const acting = at && actAs.id(at);
  if (acting) headers["X-Zonekeeper-Act-As"] = acting;
  if (key) headers["Idempotency-Key"] = key;
  if (method !== "GET") headers["X-Zonekeeper-CSRF"] = csrfToken.peek();
  if (isMarked && method === "GET") headers["X-Zonekeeper-Refresh"] = "1";
  if (body !== undefined && !(body instanceof Blob)) headers["Content-Type"] = "application/json";
  let answer;
  try {
    const content = body === undefined || body instanceof Blob ? body : JSON.stringify(body);
    answer = await fetch(address, { method, headers, body: content, signal: abort, credentials: "same-origin" });
  } catch (error) {
    if (abort?.aborted) throw error;
    throw new RequestError(0, { reason: "The node does not answer. It may be restarting, or the connection is down." });
  }
  const text = await answer.text();
  const isJSON = answer.headers.get("Content-Type")?.includes("json");
  const value = isJSON && text ? JSON.parse(text) : text;
  if (acting && answer.status === 403) actAs.refused();
  if (!answer.ok) throw new RequestError(answer.status, isJSON ? value : { reason: text.slice(0, 500) });
  return value;
}

/** For so long reads are sent again where the server says that this will help, as while leaders are chosen. */
const patienceMilliseconds = 15_000;

/** Why reads wait at the moment, and with what hope; empty as a rule. */
export const waiting = signal(/** @type {RequestError[]} */ ([]));

/** Waits before a read is sent again; the page says so meanwhile. @param {RequestError} error @param {number} milliseconds @param {AbortSignal} [abort] */
async function wait(error, milliseconds, abort) {
  waiting.value = [...waiting.peek(), error];
  try {
    await new Promise((done, fail) => {
      const timer = setTimeout(done, milliseconds);
      abort?.addEventListener("abort", () => {
        clearTimeout(timer);
        fail(abort.reason);
      }, { once: true });
    });
  } finally {
    waiting.value = waiting.peek().filter((each) => each !== error);
  }
}

/**
 * Sends a request, once more after the session was renewed, here or in another tab, and a read again where its
 * connection ended, and as long as the server says that it helps.
 * @param {string} operation the method and the path as `/openapi.json` has it, such as "GET /admin/1/users"
 * @param {Options} [given]
 */
export async function call(operation, given = {}) {
  const [method, path] = operation.split(" ");
  const options = atPlace(path, { isRefresh, ...given });
  const address = url(path, options);
  const isRead = method === "GET" || /\/(query|lookup|changes|list|usage|validate)$/.test(path);
  const end = Date.now() + patienceMilliseconds;
  for (let attempt = 0; ; attempt += 1) {
    const token = csrfToken.peek();
    try {
      return await send(method, address, options);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      // A time of zero is no reason to hammer at the door.
      const pause = Math.max(error.retryAfter ?? Infinity, 200);
      if ((error.needsSignIn || error.needsFreshSignIn) && attempt < 2 && !options.isSignIn) {
        await signInAgain.ask(error.needsFreshSignIn);
      } else if (error.status === 403 && method !== "GET" && attempt === 0 && !options.isSignIn && (await otherTab.isTaken(token))) {
        // The person signed in again in another tab, and the token was of the session before.
      } else if (isRead && error.status === 0 && attempt === 0) {
        // A connection may end just as it is used: the browser makes another one.
      } else if (isRead && Date.now() + pause < end) {
        await wait(error, pause, options.signal);
      } else throw error;
    }
  }
}

/**
 * The values of a form that differ from those it began with: what was not touched may have changed elsewhere meanwhile.
 * @param {Record<string, any>} before @param {Record<string, any>} now
 */
export const changed = (before, now) => Object.fromEntries(
  Object.entries(now).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])));

/** Sends a file to a URL that the server gave. @param {string} address @param {Blob} file */
export async function upload(address, file) {
  const { pathname, search } = new URL(address, location.href);
  return send("POST", pathname + search, { body: file });
}

/** Fetches a file by its download URL. @param {string} address */
export async function download(address) {
  const answer = await fetch(ownAddress(address), { credentials: "same-origin" });
  if (!answer.ok) throw new RequestError(answer.status, { reason: "The file could not be fetched." });
  return answer.blob();
}

/** A URL of the server on the page's own origin, as a page may only ask there. @param {string} address */
export function ownAddress(address) {
  const { pathname, search } = new URL(address, location.href);
  return pathname + search;
}
