/** What is loaded, with its states: loading (told after 200 ms), stale (with its age), failed. */
import { Signal, effect, onCleanup, signal, untracked } from "./signal.js";
import { RequestError, asRefresh } from "./api.js";

/**
 * @template T
 * @typedef {{data: Signal<T | undefined>, error: Signal<RequestError | null>, isLoading: Signal<boolean>,
 *     isSlow: Signal<boolean>, since: Signal<number>, reload: () => void}} Resource `since`: when the data came
 */

/**
 * Loads now, and again when a value changes that `load` reads before it waits. Old data stays until new data is there.
 * @template T @param {(abort: AbortSignal) => Promise<T> | null} load `null` where there is nothing to load
 * @returns {Resource<T>}
 */
export function resource(load) {
  /** @type {Resource<T>} */
  const made = {
    data: signal(undefined),
    error: signal(/** @type {RequestError | null} */ (null)),
    isLoading: signal(false),
    isSlow: signal(false),
    since: signal(0),
    reload: () => (turn.value += 1),
  };
  const turn = signal(0);
  effect(() => {
    void turn.value;
    const abort = new AbortController();
    const promise = load(abort.signal);
    let timer = 0;
    onCleanup(() => {
      abort.abort();
      clearTimeout(timer);
    });
    if (!promise) {
      made.data.value = undefined;
      made.error.value = null;
      made.isLoading.value = made.isSlow.value = false;
      return;
    }
    untracked(() => {
      made.isLoading.value = true;
      timer = setTimeout(() => (made.isSlow.value = true), 200);
      promise
        .then((data) => {
          if (abort.signal.aborted) return;
          made.data.value = data;
          made.since.value = Date.now();
          made.error.value = null;
        })
        .catch((error) => {
          if (abort.signal.aborted) return;
          made.error.value = asRequestError(error);
        })
        .finally(() => {
          clearTimeout(timer);
          if (!abort.signal.aborted) made.isLoading.value = made.isSlow.value = false;
        });
    });
  });
  return made;
}

/** Moves every few seconds, for what says how old something is, or how much time is left. */
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 5000);

/** @param {unknown} error */
export function asRequestError(error) {
  if (error instanceof RequestError) return error;
  console.error(error);
  return new RequestError(0, { reason: String(error), serverErrorCode: "PAGE_ERROR" });
}

/**
 * Calls `run` every so often while the page is seen, until the effect around ends.
 * @param {() => void} run
 * @param {number} milliseconds
 */
export function every(run, milliseconds) {
  const timer = setInterval(() => document.visibilityState === "visible" && asRefresh(run), milliseconds);
  onCleanup(() => clearInterval(timer));
}
