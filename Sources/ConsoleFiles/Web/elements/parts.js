/** The small parts that screens are made of. */
import { computed, signal } from "../core/signal.js";
import { append, html } from "../core/dom.js";
import { ago, time } from "../core/format.js";
import { now } from "../core/resource.js";
import { icon } from "./icon.js";

const { a, button: buttonElement, code, dd, div, dl, dt, h1, header, input, label, p, span, strong } = html;

let nextID = 0;
/** An id that is used once in the page. */
export const uniqueID = () => `id-${(nextID += 1)}`;

/**
 * @typedef {{label?: any, icon?: string, kind?: "primary" | "danger" | "quiet" | "plain", onclick?: (event: Event)
 *   => any,
 *     denied?: () => string | null | undefined, busy?: () => boolean, title?: string, hides?: boolean, keys?: string,
 *     class?: string, type?: string, [attribute: string]: any}} ButtonOptions
 */

/**
 * A button. One that the person may not press can be focused and says why; one at work is pressed once only.
 * @param {ButtonOptions} options `hides`: the label is for screen readers alone
 */
export function button({ label: text, icon: name, kind, onclick, denied, busy, title, hides, class: extra, ...rest }) {
  const running = signal(false);
  const isBusy = () => running.value || (busy?.() ?? false);
  return buttonElement(
    {
      type: "button",
      ...rest,
      class: () => ["button", kind, hides && "icon-only", isBusy() && "is-busy", extra],
      title: () => denied?.() ?? title ?? (hides && typeof text === "string" ? text : null),
      "aria-disabled": () => (denied?.() || isBusy() ? "true" : null),
      onclick: async (event) => {
        if (denied?.() || isBusy()) return event.preventDefault();
        const result = onclick?.(event);
        if (!(result instanceof Promise)) return;
        running.value = true;
        try {
          await result;
        } finally {
          running.value = false;
        }
      },
    },
    name ? icon(name) : null,
    hides ? span({ class: "hidden-text" }, text) : text ? span({ class: "button-label" }, text) : null,
  );
}

/**
 * The head of a screen: its title, a word on it, its actions.
 * @param {{title: any, detail?: any, actions?: any[]}} options
 */
export const screenHead = ({ title, detail, actions }) =>
  header({ class: "screen-head" },
    div({ class: "screen-title" }, h1({ tabindex: "-1" }, title), detail ? p({ class: "muted" }, detail) : null),
    actions ? div({ class: "actions" }, actions) : null);

/**
 * What is shown where there is nothing yet.
 * @param {{icon?: string, title: string, text?: any, action?: any}} options
 */
export const empty = ({ icon: name = "records", title, text, action }) =>
  div({ class: "empty" }, div({ class: "empty-icon" }, icon(name)), strong(title), text ? p({ class: "muted" }, text) : null, action);

/** What is shown to somebody whose role is not enough. @param {string} why as `denial` says it */
export const notForRole = (why) => empty({ icon: "lock", title: "Not for your role", text: `${why} An admin gives roles under Settings.` });

/**
 * An error, in place: what failed, the code, the reason, the request's id, and a way on.
 * @param {import("../core/api.js").RequestError} error @param {{title?: string, retry?: () => void, actions?: any}}
 *   [options]
 */
export const errorBox = (error, { title = "This did not work", retry, actions } = {}) =>
  div({ class: "error-box", role: "alert" },
    icon("danger"),
    div({ class: "error-text" },
      p(strong(title), " ", code({ class: "error-code" }, error.code)),
      p({ class: "error-reason" }, withCode(error.message)),
      error.requestID ? p({ class: "muted small" }, "Request ", copyable(error.requestID)) : null,
      div({ class: "actions" }, actions, retry ? button({ label: "Retry", icon: "refresh", onclick: retry }) : null)));

/** Grey bars where rows will be. @param {number} [rows] */
const skeleton = (rows = 6) =>
  div({ class: "skeleton", "aria-hidden": "true" },
    Array.from({ length: rows }, (_, index) => div({ class: "skeleton-row", css: { width: `${92 - ((index * 17) % 40)}%` } })));

/**
 * Where nothing is shown yet: a skeleton, once the wait is long enough to be noticed.
 * @param {import("../core/resource.js").Resource<any>} resource @param {number} [rows]
 */
export const whileSlow = (resource, rows) => () =>
  resource.isSlow.value ? [skeleton(rows), span({ class: "hidden-text", role: "status" }, "Loading")] : null;

/**
 * Shows a resource in each of its states. Old content stays while new content is loaded.
 * @template T
 * @param {import("../core/resource.js").Resource<T>} resource
 * @param {{show: (data: T) => any, isEmpty?: (data: T) => boolean, empty?: () => any, rows?: number, isSteady?: boolean, error?: (error:
 *   any) => any}} options `isSteady`: drawn once, and the content follows the data by itself
 */
export function view(resource, options) {
  const hasData = computed(() => resource.data.value !== undefined);
  return div({ class: "view", "aria-busy": () => (resource.isLoading.value ? "true" : null) },
    () => {
      const error = resource.error.value;
      if (!error) return null;
      return [options.error?.(error) ?? errorBox(error, { retry: resource.reload }),
        () => (hasData.value ? p({ class: "muted small stale-since" }, () => (void now.value, `What is below was loaded ${ago(resource.since.value)}.`)) : null)];
    },
    () => {
      if (!hasData.value) return whileSlow(resource, options.rows);
      if (options.isSteady) return options.show(/** @type {T} */ (resource.data.peek()));
      return () => {
        const data = /** @type {T} */ (resource.data.value);
        if (data === undefined) return null;
        return options.isEmpty?.(data) && options.empty ? options.empty() : options.show(data);
      };
    });
}

/** A text that a click copies. @param {string} text @param {string} [shown] */
export function copyable(text, shown = text) {
  const isDone = signal(false);
  return buttonElement(
    {
      type: "button", class: "copyable", title: "Copy",
      onclick: async () => {
        await navigator.clipboard.writeText(text);
        isDone.value = true;
        announce("Copied");
        setTimeout(() => (isDone.value = false), 1500);
      },
    },
    code(shown), () => icon(isDone.value ? "check" : "copy"), span({ class: "hidden-text" }, " Copy"));
}

/** A text of the server, with what it has between backticks as code. @param {string} text */
export const withCode = (text) => text.split("`").map((part, index) => (index % 2 ? code(part) : part));

/** @param {any} text @param {"good" | "warn" | "bad" | "accent" | ""} [tone] */
export const badge = (text, tone = "") => span({ class: ["badge", tone] }, text);

/** A time, as long ago, with the exact one as its title. @param {number} milliseconds */
export const timeAgo = (milliseconds) =>
  html.time({ datetime: new Date(milliseconds).toISOString(), title: time(milliseconds) }, ago(milliseconds));

/**
 * A labelled control. @param {{label: any, hint?: any, error?: () => any, isWide?: boolean}} options
 * @param {(attributes: {id: string, "aria-describedby"?: string}) => any} control
 */
export function field({ label: text, hint, error, isWide }, control) {
  const [id, hintID] = [uniqueID(), uniqueID()];
  return div({ class: ["field", isWide && "wide"] },
    label({ for: id }, text),
    control({ id, "aria-describedby": hint || error ? hintID : undefined }),
    hint || error
      ? p({ class: () => (error?.() ? "field-error" : "hint"), id: hintID, "aria-live": "polite" }, () => error?.() ?? hint)
      : null);
}

/**
 * A labelled input of text; `oninput` is given the text.
 * @param {{label: any, hint?: any, isWide?: boolean, oninput: (text: string) => any, [attribute: string]: any}} options
 */
export const textField = ({ label: text, hint, isWide, oninput, ...rest }) =>
  field({ label: text, hint, isWide }, (attributes) => input({ ...attributes, autocomplete: "off", spellcheck: "false", ...rest,
    oninput: (event) => oninput(event.target.value) }));

/** The last column of a table, with what can be done with a row. */
export const actionsColumn = { label: "", get head() { return span({ class: "hidden-text" }, "Actions"); }, class: "end" };

/**
 * A select of options.
 * @param {{value: any, options: any, onchange: (value: string) => any, [attribute: string]: any}} options
 */
export function select({ value, options, onchange, ...rest }) {
  const element = /** @type {HTMLSelectElement} */ (html.select({ ...rest,
    onchange: (event) => onchange(event.target.value) }, () => {
    const list = typeof options === "function" ? options() : options;
    queueMicrotask(() => {
      const wanted = typeof value === "function" ? value() : value;
      if (element.value !== wanted) element.value = wanted ?? "";
    });
    return list.map((each) =>
      each.group
        ? html.optgroup({ label: each.group }, each.options.map(option))
        : option(each));
  }));
  if (typeof value === "function") append(element, () => (queueMicrotask(() => (element.value = value() ?? "")), value(), null));
  return element;
}

/** @param {{value: string, label?: string, disabled?: boolean} | string} each */
const option = (each) =>
  typeof each === "string"
    ? html.option({ value: each }, each)
    : html.option({ value: each.value, disabled: each.disabled ?? false }, each.label ?? each.value);

/**
 * @param {{label: any, checked: any, onchange: (isOn: boolean) => any, hides?: boolean, [attribute: string]: any}}
 *   options
 */
export const checkbox = ({ label: text, checked, onchange, hides, ...rest }) =>
  label({ class: "check" },
    input({ type: "checkbox", ...rest, checked, onchange: (event) => onchange(event.target.checked) }),
    span({ class: hides ? "hidden-text" : "" }, text));

/** Names and values, one below the other. @param {[any, any][]} pairs */
export const facts = (pairs) =>
  dl({ class: "facts" }, pairs.map(([name, value]) => (value === null || value === undefined ? null : div(dt(name), dd(value)))));

/** A link within the console. @param {string} href @param {any} content @param {string} [extra] */
export const link = (href, content, extra = "") => a({ href, class: extra || "link" }, content);

/**
 * A meter with its words.
 * @param {{label: any, used: number | undefined, limit: number, text: any}} options without `used` there is no bar
 */
export function meter({ label: text, used, limit, text: words }) {
  const part = used !== undefined && limit > 0 && limit < 2 ** 62 ? Math.min(1, used / limit) : 0;
  return div({ class: "meter" },
    div({ class: "meter-words" }, span(text), span({ class: "muted" }, words)),
    used === undefined ? null : div({ class: "meter-bar", "aria-hidden": "true" },
      div({ class: ["meter-fill", part > 0.9 && "bad", part > 0.8 && "warn"], css: { width: `${part === 0 ? 0 : Math.max(part * 100, 0.8)}%` } })));
}

const said = signal("");
/** Tells screen readers. @param {string} text */
export function announce(text) {
  said.value = "";
  setTimeout(() => (said.value = text), 30);
}

/** @type {import("../core/signal.js").Signal<{id: number, text: any, tone: string}[]>} */
const toasts = signal([]);

/** Says for a moment that something was done. @param {string} text @param {"good" | "bad"} [tone] */
export function toast(text, tone = "good") {
  const id = (nextID += 1);
  toasts.value = [...toasts.peek(), { id, text, tone }];
  announce(text);
  setTimeout(() => (toasts.value = toasts.peek().filter((each) => each.id !== id)), tone === "bad" ? 10000 : 4000);
}

/** Where toasts are shown, and the region that screen readers read. */
export const messages = () => [
  div({ class: "hidden-text", role: "status", "aria-live": "polite" }, said),
  div({ class: "toasts", "aria-hidden": "true" }, () =>
    toasts.value.map(({ text, tone }) => div({ class: ["toast", tone] }, icon(tone === "bad" ? "danger" : "check"), span(text)))),
];
