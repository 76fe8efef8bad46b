/** Jobs: work on all matches of a query, which a node does by itself and tells how far it is. */
import { addressOf, call, RequestError } from "./api.js";
import { recordsHere } from "./router.js";
import { html } from "./dom.js";

/**
 * @typedef {{id: string, node: number, kind: string, state: string, records: number, left: number, recordType: string,
 *     filters: number, database: string, user?: string, by: string, began: number, ended?: number, waiting?: string,
 *     format?: string, bytes?: number, expires?: number, problem?: {code: string, reason: string}}} Job
 */

export const beginnings = { count: "POST /admin/1/jobs/count", export: "POST /admin/1/jobs/export", delete: "POST /admin/1/jobs/delete" };

/**
 * Does a job to its end, and cancels it where `signal` ends the wait; throws where it comes to no good end.
 * @param {"count" | "export" | "delete"} kind @param {any} body a request's, of which the query counts
 * @param {{at?: ReturnType<typeof recordsHere>, format?: string, told?: (job: Job) => void, signal?: AbortSignal}}
 *   [options]
 * @returns {Promise<Job>}
 */
export async function runJob(kind, { query }, { at = recordsHere(), format, told, signal } = {}) {
  let job = await call(beginnings[kind], { place: at.place, body: { ...at.place, ...at.zone, query, format } });
  try {
    while (job.state === "running") {
      signal?.throwIfAborted();
      told?.(job);
      job = await call("GET /admin/1/jobs/state", { query: { id: job.id, wait: true }, signal });
    }
  } catch (error) {
    if (signal?.aborted) void endJob(job.id).catch(() => {});
    throw error;
  }
  told?.(job);
  if (job.state === "done") return job;
  throw new RequestError(200, { serverErrorCode: job.problem?.code ?? "CANCELLED", reason: job.problem?.reason ?? `The job was ${job.state}.` });
}

/** Cancels a job that runs, or forgets one that has ended. @param {string} id */
export const endJob = (id) => call("DELETE /admin/1/jobs", { query: { id } });

/** Has the browser save what an export wrote. @param {Job} job @returns {string} the file's name */
export function saveResult(job) {
  const name = `${job.recordType}.${job.format === "lines" ? "jsonl" : job.format}`;
  html.a({ href: addressOf("GET /admin/1/jobs/result", { query: { id: job.id } }), download: name }).click();
  return name;
}
