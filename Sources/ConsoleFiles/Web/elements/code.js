/** A text area with line numbers. */
import { html } from "../core/dom.js";

const { div, span, textarea } = html;

/**
 * @param {{label: string, text: import("../core/signal.js").Signal<string>, line: () => number, isReadOnly: () =>
 *   boolean}} options `line`: the one with an error, from 1
 */
export function codeEditor({ label, text, line, isReadOnly }) {
  const lines = () => text.value.split("\n").length;
  return div({ class: "code-editor" },
    div({ class: "line-numbers", "aria-hidden": "true" }, () => Array.from({ length: lines() }, (_, at) => span({ class: () => (line() === at + 1 ? "bad" : "") }, at + 1))),
    textarea({ "aria-label": label, class: "mono", spellcheck: "false", autocapitalize: "off", wrap: "off", value: () => text.value, readOnly: isReadOnly, rows: () => lines() + 1,
      onkeydown: (event) => {
        // Tab indents; Escape, then Tab goes on to the next control.
        if (event.key === "Escape") event.target.dataset.leaves = "1";
        else if (event.key === "Tab" && !event.shiftKey && !event.target.dataset.leaves && !event.target.readOnly) {
          event.preventDefault();
          event.target.setRangeText("    ", event.target.selectionStart, event.target.selectionEnd, "end");
          text.value = event.target.value;
        } else if (event.key !== "Tab") delete event.target.dataset.leaves;
      },
      oninput: (event) => (text.value = event.target.value) }));
}
