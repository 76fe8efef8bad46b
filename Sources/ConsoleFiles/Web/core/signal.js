/**
 * Values that computations follow. An effect runs again, in a microtask, when a value that it read has changed; what it
 * made in its last run (effects, listeners, timers) is disposed before.
 */

/** @type {Computation | null} */ let observer = null;
/** @type {Computation | null} */ let owner = null;
/** @type {Set<Computation>} */ const queue = new Set();
let nextID = 0;
let isScheduled = false;

class Computation {
  /** @param {() => void} run @param {boolean} isMemo */
  constructor(run, isMemo) {
    this.run = run;
    this.isMemo = isMemo;
    this.id = nextID++;
    /** @type {Set<Signal<any>>} */ this.sources = new Set();
    /** @type {(() => void)[]} */ this.cleanups = [];
    owner?.cleanups.push(() => this.dispose());
  }
  execute() {
    this.reset();
    const [lastObserver, lastOwner] = [observer, owner];
    observer = owner = this;
    try {
      this.run();
    } finally {
      observer = lastObserver;
      owner = lastOwner;
    }
  }
  invalidate() {
    queue.add(this);
    if (!isScheduled) {
      isScheduled = true;
      queueMicrotask(flush);
    }
  }
  reset() {
    for (const source of this.sources) source.observers.delete(this);
    this.sources.clear();
    for (const cleanup of this.cleanups.splice(0)) cleanup();
  }
  dispose() {
    this.reset();
    queue.delete(this);
  }
}

/** @template T */
export class Signal {
  /** @param {T} value */
  constructor(value) {
    this.current = value;
    /** @type {Set<Computation>} */ this.observers = new Set();
  }
  get value() {
    if (observer) {
      this.observers.add(observer);
      observer.sources.add(this);
    }
    return this.current;
  }
  set value(value) {
    if (Object.is(value, this.current)) return;
    this.current = value;
    for (const each of [...this.observers]) each.invalidate();
  }
  /** The value, without following it. */
  peek() {
    return this.current;
  }
}

/** @template T @extends {Signal<T>} */
class Memo extends Signal {
  get value() {
    runQueued((each) => each.isMemo);
    return super.value;
  }
  set value(value) {
    super.value = value;
  }
  peek() {
    runQueued((each) => each.isMemo);
    return this.current;
  }
}

/** @template T @param {T} value @returns {Signal<T>} */
export const signal = (value) => new Signal(value);

/** A value that follows others. @template T @param {() => T} compute @returns {Signal<T>} */
export function computed(compute) {
  const memo = new Memo((undefined));
  new Computation(() => (memo.value = compute()), true).execute();
  return memo;
}

/** Runs `run` now, and again whenever a value that it read has changed. @param {() => void} run */
export function effect(run) {
  const computation = new Computation(run, false);
  computation.execute();
  return () => computation.dispose();
}

/**
 * Runs `run` outside of what goes on, with a way to dispose what it made.
 * @template T
 * @param {(dispose: () => void) => T} run
 */
export function root(run) {
  const [lastObserver, lastOwner] = [observer, owner];
  owner = observer = null;
  const own = new Computation(() => {}, false);
  owner = own;
  try {
    return run(() => own.dispose());
  } finally {
    observer = lastObserver;
    owner = lastOwner;
  }
}

/** Reads without following. @template T @param {() => T} read */
export function untracked(read) {
  const last = observer;
  observer = null;
  try {
    return read();
  } finally {
    observer = last;
  }
}

/** Has `cleanup` called before the effect around runs again, or ends. @param {() => void} cleanup */
export function onCleanup(cleanup) {
  owner?.cleanups.push(cleanup);
}

/** @param {(each: Computation) => boolean} isMeant */
function runQueued(isMeant) {
  for (;;) {
    const next = [...queue].filter(isMeant).sort((a, b) => a.id - b.id);
    if (next.length === 0) return;
    for (const each of next) {
      // One that was disposed by another, or ran already, is not queued any more.
      if (!queue.delete(each)) continue;
      try {
        each.execute();
      } catch (error) {
        console.error(error);
      }
    }
  }
}

/** Brings everything that follows values up to date now. */
function flush() {
  isScheduled = false;
  runQueued((each) => each.isMemo);
  runQueued(() => true);
}
