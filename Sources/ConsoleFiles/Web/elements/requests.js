/** What several screens show of requests: nodes that did not answer, and why one was refused. */
import { html } from "../core/dom.js";
import { ago, bytes, count, isUnlimited, time } from "../core/format.js";
import { icon } from "./icon.js";

const { code, div, p, strong } = html;

/** @param {{node: number, problem?: string}[]} nodes @param {string} consequence */
export function missingNodes(nodes, consequence) {
  const missing = nodes.filter((node) => node.problem);
  return missing.length === 0 ? null : div({ class: "notice warn", role: "status" }, icon("danger"), div(
    p(strong(missing.length === 1 ? `Node ${missing[0].node} does not answer` : `Nodes ${missing.map((node) => node.node).join(", ")} do not answer`), `: ${consequence}.`),
    p({ class: "small" }, missing.map((node) => node.problem).join("; "))));
}

/** What refused a request, as it was then. @param {any} request one with a refusal */
export function refusalBox({ refusal, code: failure, itemCode }) {
  const amount = (value) => (isUnlimited(value) ? "unlimited" : /bytes/i.test(refusal.rule) ? bytes(value) : count(value));
  const used = refusal.used === undefined ? "" : `${amount(refusal.used)} of `;
  return div({ class: "verdict bad refusal" }, icon("danger"), div(
    p(strong("Refused by "), code(refusal.rule), refusal.limit === undefined ? null : `: ${used}${amount(refusal.limit)} used`),
    p({ class: "small" }, [failure ?? itemCode, !refusal.freeAt ? null : refusal.freeAt > Date.now() ? `free again ${ago(refusal.freeAt)}` : `free again since ${time(refusal.freeAt)}`].filter(Boolean).join(" · ")),
    refusal.reason ? p({ class: "small" }, refusal.reason) : null));
}
