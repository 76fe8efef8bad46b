/** Matches counted up to a bound, and many records saved or deleted at once. */
import { call, modifyRecords, newKey, queryRecords, RequestError } from "./api.js";
import { place } from "./router.js";

/** Operations that one request may have. */
const operationsMax = 200;

/**
 * The pages of a query's matches.
 * @param {any} body a request's, of which the query counts @param {{desiredKeys?: string[], signal?: AbortSignal}} [options]
 */
async function* pages({ query }, { desiredKeys, signal } = {}) {
  const at = place.peek();
  let continuationMarker;
  do {
    const page = await call(queryRecords, { place: at, signal, body: { query, desiredKeys, resultsLimit: 200, numbersAsStrings: true, continuationMarker } });
    yield page.records;
    ({ continuationMarker } = page);
  } while (continuationMarker);
}

/**
 * How many records match, and whether that is all of them: counting ends above `max`.
 * @param {any} body @param {number} max @param {AbortSignal} [signal]
 */
export async function countMatches(body, max, signal) {
  let count = 0;
  for await (const records of pages(body, { desiredKeys: [], signal })) {
    count += records.length;
    if (count > max) return { count: max, isAll: false };
  }
  return { count, isAll: true };
}

/**
 * Sends operations, some at a time; each request once, also where its answer was lost.
 * @param {any[]} operations @param {{done?: (answers: any[]) => void, signal?: AbortSignal}} [options]
 */
export async function modifyMany(operations, { done, signal } = {}) {
  const at = place.peek();
  for (let start = 0; start < operations.length; start += operationsMax) {
    const options = { place: at, signal, key: newKey(), body: { operations: operations.slice(start, start + operationsMax), numbersAsStrings: true } };
    const send = () => call(modifyRecords, options);
    const { records } = await send().catch((error) => {
      if (!(error instanceof RequestError) || (error.status !== 0 && error.retryAfter === undefined) || signal?.aborted) throw error;
      return new Promise((ready) => setTimeout(ready, Math.min(error.retryAfter ?? 1000, 10_000))).then(send);
    });
    done?.(records);
  }
}
