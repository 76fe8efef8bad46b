/** What many screens need of the place where the page is: its containers, and the schema of the one that is open. */
import { computed, root } from "./signal.js";
import { call } from "./api.js";
import { resource } from "./resource.js";
import { place } from "./router.js";
import { session } from "./session.js";

const container = computed(() => place.value.container);
const environment = computed(() => place.value.environment);

/** The containers that the person may see. */
export const containers = root(() =>
  resource((abort) => (session.value ? call("GET /admin/1/containers", { signal: abort }).then((answer) => answer.containers) : null)));

/**
 * The schema of the place, as the server has it.
 * @type {import("./resource.js").Resource<import("./schema.js").Schema & {container: string, environment: string}>}
 */
export const schemaState = root(() =>
  resource((abort) => {
    const query = { container: container.value, environment: environment.value };
    return session.value && query.container ? call("GET /admin/1/schema/state", { query, signal: abort }) : null;
  }));

/** The schema, where it is the place's and not the last one's. */
export const schema = root(() => computed(() => {
  const state = schemaState.data.value;
  return state && state.container === container.value && state.environment === environment.value ? state : undefined;
}));
