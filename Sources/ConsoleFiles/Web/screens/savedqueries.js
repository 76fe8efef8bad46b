/** Queries that this browser keeps: the type, filters, order and columns, under a name. */
import { html } from "../core/dom.js";
import { address, place } from "../core/router.js";
import { remembered } from "../core/store.js";
import { button, textField, toast } from "../elements/parts.js";
import { menuButton, openForm } from "../elements/dialog.js";

const { a, div, p } = html;

/** By container: names, and the parameters of the address. */
const kept = remembered("queries", /** @type {Record<string, Record<string, Record<string, string>>>} */ ({}));

const own = () => kept.value[place.value.container ?? ""] ?? {};

/** @param {Record<string, Record<string, string>>} queries */
const keep = (queries) => (kept.value = { ...kept.peek(), [place.peek().container ?? ""]: queries });

function save() {
  const { record: _, new: __, ...params } = place.peek().params;
  let name = "";
  return openForm({
    title: "Save this query", submitLabel: "Save query",
    body: () => textField({ label: "Name", hint: "Its type, filters, order and columns are kept in this browser.", isWide: true, autofocus: true, oninput: (text) => (name = text.trim()) }),
    submit: async () => {
      if (!name) throw new Error("It needs a name.");
      keep({ ...own(), [name]: params });
      toast(`Saved the query ${name}`);
    },
  });
}

export const savedQueries = () =>
  menuButton({ label: "Saved", icon: "star", kind: "plain", isPanel: true, chevron: false, describe: "Saved queries", items: () => [
    () => Object.entries(own()).map(([name, params]) => div({ class: "saved" }, a({ class: "menu-item", href: address({ screen: "records", params }) }, name),
      button({ label: `Forget ${name}`, icon: "close", kind: "plain", hides: true, onclick: () => { const { [name]: _, ...others } = own(); keep(others); } }))),
    () => (Object.keys(own()).length ? null : p({ class: "hint" }, "A query that you need often can be kept here.")),
    button({ label: "Save this query…", icon: "add", kind: "plain", onclick: save }),
  ] });
