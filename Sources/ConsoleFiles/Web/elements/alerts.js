/** Alerts: the bell in the frame, and the rules with their thresholds on Telemetry. */
import { computed, root } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { resource } from "../core/resource.js";
import { address, place } from "../core/router.js";
import { denial, session } from "../core/session.js";
import { containers } from "../core/context.js";
import { count, plural } from "../core/format.js";
import { actionsColumn, badge, button, timeAgo, view, withCode } from "./parts.js";
import { limitText, openLimitForm } from "./limitform.js";
import { menuButton } from "./dialog.js";
import { missingNodes } from "./requests.js";
import { table } from "./table.js";
import { icon } from "./icon.js";

const { a, div, h2, li, p, section, span, strong, ul } = html;

const screen = computed(() => place.value.screen);
/** What fires anywhere. Asked for with each screen, and not by itself: a page that nobody uses is to be signed out. */
const everywhere = root(() => resource((abort) => (session.value ? (void screen.value, call("GET /admin/1/alerts", { signal: abort, isRefresh: true })) : null)));
const firing = computed(() => (everywhere.data.value?.rules ?? []).flatMap((rule) => rule.alerts.filter((alert) => alert.state === "firing").map((alert) => ({ rule, alert }))));

/** How many alerts the bell tells of; Telemetry has them all. */
const toldMax = 6;

/** Where an alert is, and how it is there. @param {any} rule @param {any} alert */
const words = (rule, alert) => [alert.container ? `${alert.container} ${alert.environment ?? ""}, as node ${alert.node} sees it` : `node ${alert.node}`,
  `: ${limitText(alert.value, rule.unit)}`, alert.detail ? `, ${alert.detail}` : "", ", since ", timeAgo(alert.since)];

/** What is wrong by rules; what each advises once. */
const told = () => {
  const list = firing.value.slice(0, toldMax);
  return [strong({ class: "bell-words" }, `${plural(firing.value.length, "alert")} firing`),
    ul({ class: "bell-words alert-words plain-list" }, [...new Set(list.map(({ rule }) => rule))].map((rule) => li(icon("danger"), div(strong(rule.title),
      list.filter((each) => each.rule === rule).map(({ alert }) => p({ class: "small" }, words(rule, alert))), p({ class: "small muted" }, withCode(rule.advice)))))),
    firing.value.length > toldMax ? p({ class: "bell-words muted" }, `And ${count(firing.value.length - toldMax)} more.`) : null];
};

/** The bell, with a dot while something fires. */
export const alertBell = () =>
  span({ class: "bell" },
    menuButton({ label: "Alerts", icon: "bell", hides: true, chevron: false, kind: "plain", isPanel: true, items: () => [
      () => (firing.value.length ? told() : p({ class: "bell-words muted" }, everywhere.error.value ? "Not known: the server did not answer." : "Nothing is wrong.")),
      () => rulesLink(),
    ] }),
    () => (firing.value.length ? span({ class: "alarm", role: "status" }, span({ class: "hidden-text" }, `${plural(firing.value.length, "alert")} firing`)) : null));

/** To the rules, which stand on the screen of a container. */
function rulesLink() {
  const container = place.value.container ?? firing.value.find(({ alert }) => alert.container)?.alert.container ?? containers.data.value?.find((each) => !each.deleted)?.name;
  return container ? a({ class: "menu-item", href: address({ container, screen: "telemetry", params: {} }) }, "All rules, and their thresholds") : null;
}

const tones = { firing: "bad", pending: "warn", ok: "good", off: "" };
const states = Object.keys(tones);
/** @param {any} rule */
const threshold = (rule) => (rule.threshold === 0 ? "off" : `${rule.measure === "below" ? "at most " : ""}${limitText(rule.threshold, rule.unit)}${rule.minutes ? `, for ${plural(rule.minutes, "minute")}` : ""}`);

/** All rules, what is wrong by each, and their thresholds. */
export function alertPanel() {
  const found = resource((abort) => call("GET /admin/1/alerts", { query: { container: place.value.container }, signal: abort }));
  const denied = () => denial("PATCH /admin/1/limits", { everywhere: true });
  const reload = () => {
    found.reload();
    everywhere.reload();
  };
  // What fires comes first.
  const rules = () => (found.data.value?.rules ?? []).toSorted((one, other) => states.indexOf(one.state) - states.indexOf(other.state));
  return section({ class: "block", id: "alerts" }, div({ class: "block-head" }, div(h2("Alerts"), p({ class: "muted" }, "What the nodes watch of themselves, and of this container. Since when, each remembers from its start on.")),
    button({ label: "Look again", icon: "refresh", kind: "plain", onclick: reload })),
    view(found, { isSteady: true, show: () => [
      () => missingNodes(found.data.value?.nodes ?? [], "what they see is not here"),
      () => (found.data.value?.leftOut ? p({ class: "notice warn" }, `${plural(found.data.value.leftOut, "more alert")} are not listed: a node tells of a hundred by each rule.`) : null),
      () => (found.data.value?.unknownRules ? p({ class: "notice warn" }, "Other nodes run a newer build, which judges by more rules than this node knows: ", found.data.value.unknownRules.join(", "), ".") : null),
      table({ caption: "Alert rules", class: "limits-table", isWrapped: true, key: (rule) => rule.name, rows: rules, columns: () => [
        { label: "Rule", cell: (rule) => [span(rule.title), " ", rule.severity === "page" ? badge("urgent", rule.alerts.length ? "bad" : "") : null,
          div({ class: "narrow-only small" }, badge(rule.state, tones[rule.state]), ` ${rule.value === undefined ? "" : `${limitText(rule.value, rule.unit)} of `}${threshold(rule)}`), rule.alerts.length ? wrong(rule) : null] },
        { label: "State", cell: (rule) => badge(rule.state, tones[rule.state]) },
        { label: "Value", class: "number nowrap", cell: (rule) => (rule.value === undefined ? span({ class: "unset" }, "–") : limitText(rule.value, rule.unit)) },
        { label: "Threshold", cell: (rule) => [threshold(rule), " ", rule.source === "default" ? null : badge(rule.source, rule.source === "container" ? "accent" : "")] },
        { ...actionsColumn, cell: (rule) => button({ label: `Set the threshold of ${rule.name}`, icon: "edit", kind: "plain", hides: true, denied, onclick: () => openLimitForm({ name: rule.limit, value: rule.threshold, unit: rule.unit, source: rule.source },
          { title: rule.title, container: rule.ofContainers ? place.peek().container : null, offersCluster: rule.ofContainers, hint: "0 switches the rule off. ", reload }) }) },
      ] }),
    ] }));
}

/** What is wrong by a rule, and what to do. @param {any} rule */
const wrong = (rule) => div({ class: "small alert-words" }, ul({ class: "plain-list" }, rule.alerts.map((alert) => li(icon("danger"), span(words(rule, alert))))), p({ class: "muted" }, withCode(rule.advice)));
