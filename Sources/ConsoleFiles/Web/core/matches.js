/** Many records saved or deleted at once. */
import { call, modifyRecords, newKey, RequestError } from "./api.js";
import { recordsHere } from "./router.js";

/** Operations that one request may have. */
const operationsMax = 200;

/**
 * Sends operations, some at a time; each request once, also where its answer was lost.
 * @param {any[]} operations
 * @param {{at?: ReturnType<typeof recordsHere>, done?: (answers: any[]) => void, signal?: AbortSignal}} [options]
 */
export async function modifyMany(operations, { at = recordsHere(), done, signal } = {}) {
  for (let start = 0; start < operations.length; start += operationsMax) {
    const options = { place: at.place, signal, key: newKey(), body: { ...at.zone, operations: operations.slice(start, start + operationsMax), numbersAsStrings: true } };
    const send = () => call(modifyRecords, options);
    const { records } = await send().catch((error) => {
      if (!(error instanceof RequestError) || (error.status !== 0 && error.retryAfter === undefined) || signal?.aborted) throw error;
      return new Promise((ready) => setTimeout(ready, Math.min(error.retryAfter ?? 1000, 10_000))).then(send);
    });
    done?.(records);
  }
}
