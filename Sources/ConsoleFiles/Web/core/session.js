/** Who is signed in, and what they may do. */
import { computed, signal } from "./signal.js";
import { RequestError, call, csrfToken, otherTab } from "./api.js";
import { acting, actingKnown, loadActing, neverActing } from "./acting.js";
import { place } from "./router.js";

/**
 * @typedef {{name: string, role: "viewer" | "developer" | "admin", containers: string[] | null, csrfToken: string,
 *     idleExpires: number, expires: number, freshUntil: number, needsPassword?: boolean,
 *     token?: {id: string, label: string, created: number}}} Session `token`: the one for the command line
 */

/** @type {import("./signal.js").Signal<Session | null>} */
export const session = signal(/** @type {Session | null} */ (null));

const ranks = { viewer: 0, developer: 1, admin: 2 };
/**
 * The least role of operations, as the server's document says.
 * @type {import("./signal.js").Signal<Map<string, keyof typeof ranks>>}
 */
const leastRoles = signal(new Map());

/** @param {Session} next */
export function take(next) {
  csrfToken.value = next.csrfToken;
  session.value = next;
  // An admin may do everything; only others need the list.
  if (next.role !== "admin" && leastRoles.peek().size === 0) rolesLoading = loadRoles().catch(() => {});
  if (next.role === "admin") void loadActing();
  else neverActing();
  return next;
}

let rolesLoading = Promise.resolve();
/** Once it is known what the person may do, so that no screen asks for what would be refused. */
export const rightsKnown = () => Promise.all([rolesLoading, actingKnown()]);

/** Asks anew who is signed in. */
export const reloadSession = async () => take(await call("GET /admin/1/console/me"));

otherTab.isTaken = async (sent) => {
  if (csrfToken.peek() !== sent) return true;
  const me = await call("GET /admin/1/console/me", { isSignIn: true }).catch(() => null);
  if (!me || me.csrfToken === sent) return false;
  if (me.name === session.peek()?.name) return Boolean(take(me));
  // The rest of the page is not for them.
  location.reload();
  throw new RequestError(403, { serverErrorCode: "ACCESS_DENIED", reason: `${me.name} signed in in another tab. Load the page again to go on as ${me.name}.` });
};

async function loadRoles() {
  const document = await call("GET /openapi.json");
  const found = new Map();
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const role = operation?.["x-least-role"];
      if (role) found.set(`${method.toUpperCase()} ${path}`, role);
    }
  }
  leastRoles.value = found;
}

export const isProduction = computed(() => place.value.environment === "production");

/**
 * Why the person may not do this; `null` where they may. The server decides, this only spares a refusal.
 * @param {string} operation such as "POST /admin/1/schema" @param {{inEnvironment?: boolean, everywhere?: boolean}} [options]
 *   `inEnvironment`: for production it takes an admin; `everywhere`: it takes a role that holds in the whole cluster
 */
export function denial(operation, options) {
  const me = session.value;
  const isData = /^POST \/(database|kv)\//.test(operation);
  if (isData && acting.value && !acting.value.write) return `You act as ${acting.value.user} to read only.`;
  if (!me) return null;
  if (me.role !== "admin") {
    const given = leastRoles.value.get(operation) ?? (operation.startsWith("GET ") ? "viewer" : "developer");
    const least = given === "developer" && options?.inEnvironment && isProduction.value ? "admin" : given;
    if (ranks[me.role] < ranks[least]) return `This needs the role ${least}; you are a ${me.role}.`;
  }
  return options?.everywhere && me.containers ? `This needs a role in the whole cluster; yours is for ${me.containers.join(", ")}.` : null;
}
