/** Dialogs and menus. The browser keeps the focus in a dialog, and gives it back to what opened it. */
import { effect, signal } from "../core/signal.js";
import { html, mount, twinsOf } from "../core/dom.js";
import { addressOf } from "../core/api.js";
import { here } from "../core/router.js";
import { asRequestError } from "../core/resource.js";
import { button, errorBox, uniqueID } from "./parts.js";
import { icon } from "./icon.js";

const { dialog, div, form, h2, p, input, label, span, strong } = html;

/**
 * Opens a dialog; the promise ends with what `close` was given, `undefined` where it was dismissed. What it asks for is
 * of the place where it was opened, so it is dismissed where that is left; what is shown once stays until it was kept.
 * @param {{title: any, class?: string, isAlert?: boolean, content: (close: (result?: any) => void) => any,
 *   mayClose?: () => boolean}} options
 * @returns {Promise<any>}
 */
export function openDialog({ title, content, class: extra = "", isAlert, mayClose }) {
  return new Promise((done) => {
    const id = uniqueID();
    const element = /** @type {HTMLDialogElement} */ (dialog({ class: ["dialog", extra], "aria-labelledby": id, role: isAlert ? "alertdialog" : null }));
    // A menu stands right behind its opener, and is gone when the dialog is closed.
    const active = document.activeElement;
    const opener = active.closest("[popover]")?.previousElementSibling ?? active;
    const around = opener.closest(".table-scroll");
    const turn = twinsOf(opener).indexOf(opener);
    let result;
    const close = (value) => {
      result = value;
      element.close();
    };
    const at = here.peek();
    const dispose = mount(element, () => {
      if (!mayClose) effect(() => here.value !== at && close());
      return [
        div({ class: "dialog-head" }, h2({ id }, title), mayClose ? null : button({ label: "Close", icon: "close", kind: "plain", hides: true, onclick: () => close() })),
        content(close),
      ];
    });
    element.addEventListener("cancel", (event) => mayClose && !mayClose() && event.preventDefault());
    element.addEventListener("close", () => {
      dispose();
      element.remove();
      // What opened it may have been drawn anew, or be gone.
      const now = (element, turn = 0) => (element?.isConnected ? element : element && (twinsOf(element)[turn] ?? twinsOf(element)[0]));
      (now(opener, turn) ?? now(around)?.querySelector("tbody [tabindex='0']") ?? document.querySelector("main h1"))?.focus();
      done(result);
    });
    element.addEventListener("mousedown", (event) => event.target === element && !mayClose && !element.querySelector("form") && close());
    document.body.append(element);
    element.showModal();
    (element.querySelector("[autofocus]") ?? element.querySelector(".dialog-body input, .dialog-body select, .dialog-body textarea"))?.focus();
  });
}

/**
 * A dialog with a form. `submit` does the work; where it fails, its error is shown and the dialog stays.
 * @param {{title: any, submitLabel: string, kind?: "primary" | "danger", class?: string, isAlert?: boolean,
 *     body: (close: (result?: any) => void) => any, submit: () => Promise<any>, denied?: () => string | null |
 *   undefined,
 *     cancelLabel?: string}} options
 */
export function openForm({ title, submitLabel, kind = "primary", body, submit, denied, class: extra, isAlert, cancelLabel = "Cancel" }) {
  return openDialog({
    title, class: extra, isAlert,
    content: (close) => {
      const error = signal(null);
      const isBusy = signal(false);
      return form(
        {
          novalidate: true,
          onsubmit: async (event) => {
            event.preventDefault();
            if (isBusy.peek() || denied?.()) return;
            isBusy.value = true;
            try {
              close((await submit()) ?? true);
            } catch (failure) {
              error.value = asRequestError(failure);
            } finally {
              isBusy.value = false;
            }
          },
        },
        div({ class: "dialog-body" }, body(close), () => (error.value ? errorBox(error.value) : null)),
        div({ class: "dialog-foot" },
          button({ label: cancelLabel, onclick: () => close() }),
          button({ label: submitLabel, kind, type: "submit", denied, busy: () => isBusy.value })),
      );
    },
  });
}

/**
 * Asks before something that cannot be taken back: names it, says what follows; `typed` must be typed.
 * @param {{title: any, text: any, action: string, typed?: string | null, denied?: () => string | null,
 *   submit?: () => Promise<any>, kind?: "primary" | "danger"}} options
 */
export function confirm({ title, text, action, typed, denied, submit, kind = "danger" }) {
  const entered = signal("");
  const id = uniqueID();
  return openForm({
    title, submitLabel: action, kind, isAlert: true,
    submit: submit ?? (async () => true),
    denied: () => denied?.() ?? (typed && entered.value !== typed ? `Type ${typed} first.` : null),
    body: () => [
      typeof text === "string" ? p(text) : text,
      typed
        ? div({ class: "field wide" }, label({ for: id }, "Type ", strong(typed), " to go on"),
          input({ id, autocomplete: "off", spellcheck: "false", autofocus: true, oninput: (event) => (entered.value = event.target.value) }))
        : null,
    ],
  });
}

/** Shows a secret that is shown once. @param {{title: string, text: any, secret: string}} options */
export const showSecret = ({ title, text, secret }) =>
  openDialog({
    title,
    mayClose: () => true,
    content: (close) => [
      div({ class: "dialog-body" }, p(text),
        div({ class: "secret" }, html.code({ tabindex: "0" }, secret),
          button({ label: "Copy", icon: "copy", onclick: () => navigator.clipboard.writeText(secret) }))),
      div({ class: "dialog-foot" }, button({ label: "I have kept it", kind: "primary", onclick: () => close() })),
    ],
  });

/**
 * A button that opens a menu. @param {{label: any, icon?: string, hides?: boolean, class?: string, kind?: any,
 *   title?: string,
 *     items: () => any[], isPanel?: boolean, describe?: string, denied?: any, chevron?: boolean}} options `isPanel`:
 *   controls, not commands
 */
export function menuButton({ label: text, icon: name, hides, class: extra = "", kind, title, items, isPanel, chevron = true, denied, describe }) {
  const isOpen = signal(false);
  const menu = (div({ class: ["menu", isPanel && "panel"], role: isPanel ? "group" : "menu", popover: "auto", "aria-label": describe ?? (typeof text === "string" ? text : title) }));
  /** @type {(() => void) | null} */ let dispose = null;
  const opener = button({
    label: chevron && !hides ? [text, icon("chevron")] : text, icon: name, hides, kind, title, class: extra, denied,
    "aria-haspopup": isPanel ? "true" : "menu", "aria-expanded": () => String(isOpen.value),
    onclick: () => (isOpen.peek() ? menu.hidePopover() : show()),
  });
  const show = () => {
    if (dispose) return;
    dispose = mount(menu, items);
    // Beside its opener, so that it is in the same landmark; as a popover it lies above all.
    opener.after(menu);
    menu.showPopover();
    const [at, size] = [opener.getBoundingClientRect(), menu.getBoundingClientRect()];
    const left = Math.max(8, Math.min(at.left, innerWidth - size.width - 8));
    const below = at.bottom + 4 + size.height <= innerHeight - 8;
    menu.style.left = `${left}px`;
    menu.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - size.height - 4)}px`;
    focusable(menu)[0]?.focus();
  };
  menu.addEventListener("toggle", (event) => {
    isOpen.value = event.newState === "open";
    if (event.newState === "open") return;
    const hadFocus = menu.contains(document.activeElement) || document.activeElement === document.body;
    dispose?.();
    dispose = null;
    menu.remove();
    if (hadFocus) opener.focus();
  });
  menu.addEventListener("keydown", (event) => {
    const list = focusable(menu);
    const at = list.indexOf((document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.length - 1 }[event.key];
    if (to === undefined || (isPanel && event.target instanceof HTMLInputElement && event.target.type === "text" && event.key.startsWith("H"))) return;
    event.preventDefault();
    list[(to + list.length) % list.length]?.focus();
  });
  menu.addEventListener("click", (event) => {
    if (event.target.closest(isPanel ? "a" : "[role^=menuitem]:not([aria-disabled=true])")) menu.hidePopover();
  });
  return opener;
}

/** @param {Element} parent @returns {HTMLElement[]} */
const focusable = (parent) => [...parent.querySelectorAll("a, button, input, select")].filter((each) => !each.hasAttribute("disabled"));

/**
 * @param {{label: any, icon?: string, onclick?: () => any, href?: string, isOn?: boolean, danger?: boolean, denied?:
 *   string | null, detail?: any}} options
 */
export function menuItem({ label: text, icon: name, onclick, href, isOn, danger, denied, detail }) {
  const content = [name ? icon(name) : null, span({ class: "menu-label" }, text), detail ? span({ class: "muted small" }, detail) : null, isOn ? icon("check") : null];
  const common = { class: ["menu-item", danger && "danger"], role: isOn === undefined ? "menuitem" : "menuitemradio", "aria-checked": isOn === undefined ? null : String(isOn), tabindex: "-1" };
  return href
    ? html.a({ ...common, href }, content)
    : html.button({ ...common, type: "button", "aria-disabled": denied ? "true" : null, title: denied ?? null, onclick: () => !denied && onclick?.() }, content);
}

/** A line and a word between groups of a menu. @param {string} [text] */
export const menuGroup = (text) => div({ class: "menu-group", role: "presentation" }, text ?? "");

/**
 * A menu of files that the server writes, page by page, whatever is shown of them.
 * @param {() => {label: string, operation: string, query: Record<string, any>}[]} files
 */
export const exportMenu = (files) => menuButton({
  label: "Export", icon: "down",
  items: () => files().map(({ label: text, operation, query }) => menuItem({ label: text, onclick: () => html.a({ href: addressOf(operation, { query }), download: "" }).click() })),
});
