/** The form by which a limit is set, for a container or the cluster. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { bytes, count, isUnlimited } from "../core/format.js";
import { checkbox, field, select, textField, toast } from "./parts.js";
import { openForm } from "./dialog.js";

const { code, p } = html;

/** @param {number} value @param {string} unit */
export const limitText = (value, unit) => (isUnlimited(value) ? "unlimited" : unit === "bytes" ? bytes(value) : `${count(value)} ${value === 1 ? single[unit] ?? unit : unit}`);

/** @type {Record<string, string>} */
const single = { requests: "request", records: "record", minutes: "minute", days: "day", versions: "version", entries: "entry", elections: "election" };

/**
 * Sets a limit, or takes its value back.
 * @param {{name: string, value: number, unit: string, source: string}} limit
 * @param {{title: string, container: string | null, offersCluster?: boolean, hint?: string, reload: () => void}} options
 *   `container`: whose value it is; `null` for the cluster's; `offersCluster`: the person chooses
 */
export function openLimitForm({ name, value: present, unit, source }, { title, container, offersCluster, hint = "", reload }) {
  const value = signal(isUnlimited(present) ? "" : String(present));
  const target = signal(container ? "container" : "cluster");
  const usesDefault = signal(false);
  return openForm({
    title, submitLabel: "Set limit",
    denied: () => (usesDefault.value || /^\d+$/.test(value.value.trim()) ? null : "A whole number is needed."),
    body: () => [
      p({ class: "muted" }, code(name), `, for ${container ?? "the cluster"}. Now ${limitText(present, unit)}, from the ${source}.`),
      offersCluster && container ? field({ label: "Counts for" }, (attributes) => select({ ...attributes, value: () => target.value, onchange: (next) => (target.value = next),
        options: [{ value: "container", label: container }, { value: "cluster", label: "All containers without a value of their own" }] })) : null,
      textField({ label: `Value (${unit})`, hint: `${hint}Counts on all nodes within a second.`, isWide: true, class: "number", inputmode: "numeric", autofocus: true, value: value.peek(), disabled: () => usesDefault.value, oninput: (text) => (value.value = text) }),
      () => (source === target.value ? checkbox({ label: source === "container" ? "Take this container’s value back" : "Take the cluster’s value back", checked: usesDefault.peek(), onchange: (isOn) => (usesDefault.value = isOn) }) : null),
    ],
    submit: async () => {
      const to = usesDefault.peek() && source === target.peek() ? null : Number(value.peek().trim());
      await call("PATCH /admin/1/limits", { query: { container: target.peek() === "container" ? container : undefined }, body: { [name]: to } });
      reload();
      toast(to === null ? `${name} is as before` : `${name} is ${limitText(to, unit)} now`);
    },
  });
}
