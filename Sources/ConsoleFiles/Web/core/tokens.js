/** Sessions and tokens of users and administrators. */
import { call } from "./api.js";

/** All tokens of a list, a page after another. @param {Record<string, any>} query @param {AbortSignal} [signal] */
export async function allTokens(query, signal) {
  const tokens = [];
  let after;
  do {
    const page = await call("GET /admin/1/tokens", { query: { ...query, after, limit: 200 }, signal });
    tokens.push(...page.tokens);
    after = page.next;
  } while (after && tokens.length < 1000);
  return tokens;
}

/** Where a user is signed in, the newest first. @param {string} user @param {AbortSignal} [signal] */
export const sessionsOf = async (user, signal) => (await allTokens({ user, kind: "session,sign-in" }, signal)).reverse();

/** An administrator's sessions in the console. @param {string} name */
export const consoleSessionsOf = async (name) => (await allTokens({ kind: "console" })).filter((token) => token.name === name);

/** Ends sessions, or revokes tokens; one that has ended meanwhile is no error. @param {{id: string}[]} tokens */
export async function endSessions(tokens) {
  for (const { id } of tokens) await call("DELETE /admin/1/tokens", { query: { id } }).catch((error) => { if (error.status !== 404) throw error; });
}
