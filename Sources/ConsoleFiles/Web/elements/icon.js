/** Icons of 16 by 16, drawn with one stroke. */
import { svg } from "../core/dom.js";

/** @type {Record<string, string>} */
const paths = {
  add: "M8 3v10M3 8h10",
  asset: "M13 7.5 7.8 12.7a3 3 0 0 1-4.3-4.3l5.6-5.6a2 2 0 0 1 2.9 2.9l-5.5 5.5a1 1 0 0 1-1.4-1.4l5-5",
  audit: "M4 2.5h8v11H4zM6.5 5.5h3M6.5 8h3M6.5 10.5h2",
  check: "M3 8.5 6.5 12 13 4.5",
  chevron: "M4.5 6.5 8 10l3.5-3.5",
  close: "m4 4 8 8M12 4l-8 8",
  cluster: "M2.5 3h11v3.5h-11zM2.5 9.5h11V13h-11zM5 4.8h.01M5 11.2h.01",
  columns: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
  container: "M8 2 2.5 4.8v6.4L8 14l5.5-2.8V4.8zM2.5 4.8 8 7.6l5.5-2.8M8 7.6V14",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  danger: "M8 2.5 14.2 13H1.8zM8 6.5v3M8 11.3h.01",
  deploy: "M8 13V4M4.5 7 8 3.5 11.5 7",
  down: "M8 3v9M4.5 8.5 8 12l3.5-3.5",
  edit: "m3 13 .7-3L11 2.7 13.3 5 6 12.3z",
  explain: "M3 13V8M8 13V3M13 13v-3",
  feed: "M3 3.5a9.5 9.5 0 0 1 9.5 9.5M3 7.5A5.5 5.5 0 0 1 8.5 13M3.5 12.5h.01",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
  help: "M6 6a2 2 0 1 1 2.7 1.9c-.5.2-.7.6-.7 1.1v.3M8 11.7h.01",
  index: "M3 4h6M3 8h4M3 12h4M12 4v8M9.8 9.8 12 12l2.2-2.2",
  job: "M3 3.5h4v4H3zM3 10.5h4M9.5 3.5h3.5M9.5 6h3.5M9.5 10.5h3.5M3 13h10",
  key: "M10.7 2.6a2.7 2.7 0 1 1 0 5.4 2.7 2.7 0 0 1 0-5.4M8.8 7.2 3 13M4.6 11.4l1.5 1.5M6.5 9.5 8 11",
  limit: "M2.5 11a5.5 5.5 0 1 1 11 0M8 11l2.5-4",
  load: "M2.5 13h11M4.5 10.5v-3M8 10.5v-6M11.5 10.5v-8",
  lock: "M4 7.5h8v5.5H4zM5.5 7.5V5.3a2.5 2.5 0 0 1 5 0v2.2",
  log: "M3 4h1.5M3 8h1.5M3 12h1.5M7 4h6M7 8h6M7 12h4",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  preferences: "M3 4.5h4M10.5 4.5H13M8.7 3v3M3 8h1.5M8 8h5M6.2 6.5v3M3 11.5h5.5M12 11.5h1M10.3 10v3",
  records: "M2.5 3h11v10h-11zM2.5 6.3h11M2.5 9.6h11M6.5 6.3V13",
  refresh: "M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3",
  reset: "M3 8a5 5 0 1 0 1.5-3.6M3 2.5v3h3",
  role: "M8 2.2 13 4v4c0 3-2.2 4.9-5 5.8C5.2 12.9 3 11 3 8V4zM5.8 8l1.6 1.6 2.8-3",
  search: "M7 2.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4M10 10l3.5 3.5",
  settings: "M2.5 4.5h6M12 4.5h1.5M10.3 3v3M2.5 11.5H4M7.5 11.5h6M5.8 10v3",
  sort: "M5 3v10M2.8 10.8 5 13l2.2-2.2M11 13V3M8.8 5.2 11 3l2.2 2.2",
  star: "m8 2.2 1.8 3.7 4 .6-2.9 2.8.7 4L8 11.4l-3.6 1.9.7-4-2.9-2.8 4-.6z",
  bell: "M4 11.5V7.5a4 4 0 0 1 8 0v4l1 1H3zM6.8 14h2.4",
  team: "M6 3a2.2 2.2 0 1 1 0 4.4A2.2 2.2 0 0 1 6 3M2 13c0-2.2 1.8-3.6 4-3.6s4 1.4 4 3.6M10.5 3.3a2.2 2.2 0 0 1 0 3.9M11.8 9.8c1.4.5 2.2 1.7 2.2 3.2",
  telemetry: "M2 8.5h3l1.8-5 2.6 9L11.2 8.5H14",
  text: "m5.5 4.5-3 3.5 3 3.5M10.5 4.5l3 3.5-3 3.5",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.2 4.5l.6 9h6.4l.6-9M6.8 7v4M9.2 7v4",
  types: "M3 3h4v4H3zM9.5 3h4M9.5 6h2.5M3 9.5h4v4H3zM9.5 9.8h4M9.5 12.8h2.5",
  usage: "M8 2.5a5.5 5.5 0 1 0 5.5 5.5H8z",
  user: "M8 2.8a2.6 2.6 0 1 1 0 5.2 2.6 2.6 0 0 1 0-5.2M3 13.5c0-2.6 2.2-4 5-4s5 1.4 5 4",
  webhook: "M5.8 6.2a2.6 2.6 0 1 1 4.3.6L8 10.4M10.2 9.2a2.6 2.6 0 1 1-1.8 3.9M6.6 12.2H3.9a2.6 2.6 0 1 1 1-3.8",
  zones: "M2.5 5 8 2l5.5 3L8 8zM2.5 8 8 11l5.5-3M2.5 11 8 14l5.5-3",
};

/** An icon that only adorns: what stands beside it says the same. @param {string} name */
export const icon = (name) =>
  svg.svg({ class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg.path({ d: paths[name] ?? "" }));

/** The mark of Zonekeeper: three zones, one of which is kept. */
export const mark = () =>
  svg.svg({ class: "mark", viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg.path({ class: "mark-back", d: "M12 2.5 21 7v10l-9 4.5L3 17V7z" }),
    svg.path({ class: "mark-lines", d: "M3.4 7.2 12 11.5l8.6-4.3M12 11.5v9.6" }),
    svg.path({ class: "mark-front", d: "M12 2.5 21 7l-9 4.5L3 7z" }));
