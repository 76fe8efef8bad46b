/** Where files are dropped, or chosen by keyboard or mouse. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { icon } from "./icon.js";

const { input, label: labelElement } = html;

/**
 * @param {{label: string, words: any, onfiles: (files: File[]) => any, [attribute: string]: any}} options `label`: what
 *   the input is called; `words`: what is shown
 */
export function fileDrop({ label, words, onfiles, ...rest }) {
  const isOver = signal(false);
  return labelElement(
    {
      class: () => ["drop", isOver.value && "over"],
      ondragover: (event) => { event.preventDefault(); isOver.value = true; },
      ondragleave: () => (isOver.value = false),
      ondrop: (event) => { event.preventDefault(); isOver.value = false; onfiles([...(event.dataTransfer?.files ?? [])]); },
    },
    icon("asset"), words,
    input({ ...rest, type: "file", class: "hidden-text", "aria-label": label, onchange: ({ target }) => {
      const files = [...target.files];
      // The same file can be chosen again.
      target.value = "";
      onfiles(files);
    } }));
}
