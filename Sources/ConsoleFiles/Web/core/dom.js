/**
 * Elements from functions: `div({class: "card"}, h2("Title"), () => count.value)`. Text goes through text nodes only. A
 * function as a child or as a property follows the values that it reads.
 */
import { Signal, effect, onCleanup, root, signal, untracked } from "./signal.js";

/** What is set as a property of the element; all else is an attribute. */
const properties = new Set(["value", "checked", "indeterminate", "disabled", "open", "selected", "hidden", "readOnly"]);

/** @typedef {Node | string | number | boolean | null | undefined | Signal<any> | (() => any) | any[]} Child */

/** @param {string | null} namespace @returns {Record<string, (...args: any[]) => any>} */
const maker = (namespace) =>
  new Proxy(({}), {
    get: (_, tag) => (...args) => make(namespace, String(tag), args),
  });

/** HTML elements by tag. */
export const html = maker(null);
/** SVG elements by tag. */
export const svg = maker("http://www.w3.org/2000/svg");

/** @param {string | null} namespace @param {string} tag @param {any[]} args */
function make(namespace, tag, args) {
  const element = namespace ? document.createElementNS(namespace, tag) : document.createElement(tag);
  const [first] = args;
  const hasProperties =
    first !== null && typeof first === "object" && !Array.isArray(first) && !(first instanceof Node) &&
    !(first instanceof Signal);
  append(element, hasProperties ? args.slice(1) : args);
  // After the children, because a select takes its value from them.
  if (hasProperties) for (const [name, value] of Object.entries(first)) bind((element), name, value);
  return element;
}

/** @param {HTMLElement} element @param {string} name @param {any} value */
function bind(element, name, value) {
  if (name === "ref") value(element);
  else if (name.startsWith("on")) element.addEventListener(name.slice(2).toLowerCase(), value);
  else if (typeof value === "function") effect(() => assign(element, name, value()));
  else if (value instanceof Signal) effect(() => assign(element, name, value.value));
  else assign(element, name, value);
}

/** @param {any} element @param {string} name @param {any} value */
function assign(element, name, value) {
  if (name === "css") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, String(one));
  else if (properties.has(name)) {
    if (element[name] !== value) element[name] = value;
  } else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else {
    const text = value === true ? "" : Array.isArray(value) ? value.filter(Boolean).join(" ") : String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

/** @param {Node} parent @param {Child} child */
export function append(parent, child) {
  if (child === null || child === undefined || typeof child === "boolean") return;
  if (Array.isArray(child)) for (const one of child) append(parent, one);
  else if (child instanceof Node) parent.appendChild(child);
  else if (child instanceof Signal) parent.appendChild(region(() => child.value));
  else if (typeof child === "function") parent.appendChild(region(child));
  else parent.appendChild(document.createTextNode(String(child)));
}

/** A place between two comments whose content follows what `read` reads. @param {() => Child} read */
function region(read) {
  const [place, start, end] = [document.createDocumentFragment(), new Comment(), new Comment()];
  place.append(start, end);
  effect(() => {
    const content = read();
    const isText = typeof content === "string" || typeof content === "number";
    const old = start.nextSibling;
    if (isText && old instanceof Text && old.nextSibling === end) {
      old.data = String(content);
      return;
    }
    const next = document.createDocumentFragment();
    append(next, content);
    // The keyboard stays where it is, at what comes in place of what it was on.
    const focused = document.activeElement;
    const isInside = focused && start.parentNode.contains(focused) && focused !== start.parentNode &&
      start.compareDocumentPosition(focused) & Node.DOCUMENT_POSITION_FOLLOWING && end.compareDocumentPosition(focused) & Node.DOCUMENT_POSITION_PRECEDING;
    const twin = isInside ? twinsOf(focused, next)[0] : undefined;
    clear(start, end);
    end.parentNode.insertBefore(next, end);
    twin?.focus({ preventScroll: true });
  });
  return place;
}

/** By what a person knows a control. @param {Element} element */
const nameOf = (element) => element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent ?? element.textContent;

/**
 * What may stand now in the place of a control that was drawn anew, as each row of a table has one of its name.
 * @param {Element} old @param {ParentNode} [within] @returns {HTMLElement[]}
 */
export const twinsOf = (old, within = document) => [...within.querySelectorAll(old.localName)].filter((each) => nameOf(each) === nameOf(old));

/** @param {Node} start @param {Node} end */
function clear(start, end) {
  const range = document.createRange();
  range.setStartAfter(start);
  range.setEndBefore(end);
  range.deleteContents();
}

/**
 * One element for each item, kept as long as its key is there. `render` is given the item as a signal.
 * @template T
 * @param {() => T[]} items @param {(item: T, index: number) => string | number}
 *     key @param {(item: Signal<T>) => Element} render
 */
export function each(items, key, render) {
  const [place, start, end] = [document.createDocumentFragment(), new Comment(), new Comment()];
  place.append(start, end);
  /** @type {Map<string | number, {item: Signal<T>, element: Element, dispose: () => void}>} */
  let entries = new Map();
  onCleanup(() => entries.forEach((entry) => entry.dispose()));
  effect(() => {
    const wanted = items();
    untracked(() => {
      const keys = new Set(wanted.map(key));
      for (const [name, entry] of entries) {
        if (keys.has(name)) continue;
        entry.dispose();
        entry.element.remove();
      }
      const next = new Map();
      const parent = (end.parentNode);
      let cursor = start.nextSibling;
      wanted.forEach((item, index) => {
        const name = key(item, index);
        if (next.has(name)) return;
        let entry = entries.get(name);
        if (entry) entry.item.value = item;
        else
          entry = root((dispose) => {
            const value = signal(item);
            return { item: value, element: render(value), dispose };
          });
        next.set(name, entry);
        if (entry.element === cursor) cursor = cursor.nextSibling;
        else parent.insertBefore(entry.element, cursor);
      });
      entries = next;
    });
  });
  return place;
}

/**
 * Puts content in place of all that an element has; returns how to take it away.
 * @param {Element} parent
 * @param {() => Child} content
 */
export function mount(parent, content) {
  return root((dispose) => {
    parent.replaceChildren();
    append(parent, content());
    return dispose;
  });
}
