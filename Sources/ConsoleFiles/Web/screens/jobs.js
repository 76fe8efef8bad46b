/** Jobs: counts, exports and deletions of all matches, on whichever node they run. */
import { html } from "../core/dom.js";
import { call } from "../core/api.js";
import { asRequestError, every, resource } from "../core/resource.js";
import { address, place } from "../core/router.js";
import { useKeys } from "../core/keys.js";
import { bytes, count, plural } from "../core/format.js";
import { endJob, saveResult } from "../core/jobs.js";
import { actionsColumn, badge, button, empty, screenHead, timeAgo, toast, view } from "../elements/parts.js";
import { table } from "../elements/table.js";

const { a, div, p, section, span, strong } = html;
const kinds = { count: "Count", export: "Export", delete: "Delete" };
const tones = /** @type {const} */ ({ running: "accent", done: "good", failed: "bad", cancelled: "warn", lost: "bad" });

export function jobsScreen() {
  const jobs = resource((abort) => {
    const { container, environment } = place.value;
    return call("GET /admin/1/jobs", { signal: abort, query: { container, environment } });
  });
  every(() => jobs.data.peek()?.jobs.some((job) => job.state === "running") && !jobs.isLoading.peek() && jobs.reload(), 1000);
  useKeys([{ key: "r", label: "Load again", run: jobs.reload }]);
  const end = async (job) => {
    try {
      await endJob(job.id);
      toast(job.state === "running" ? "The job is to end" : "Forgotten");
    } catch (error) {
      toast(asRequestError(error).message, "bad");
    }
    jobs.reload();
  };
  const tools = (job) => [
    job.expires && job.recordType ? button({ label: `Download ${job.recordType}.${job.format}`, icon: "down", kind: "plain", hides: true, onclick: () => void saveResult(job) }) : null,
    button({ label: job.state === "running" ? `Cancel ${job.id}` : `Forget ${job.id}`, title: job.state === "running" ? "Cancel" : "Forget", icon: job.state === "running" ? "close" : "trash", kind: "plain", hides: true, onclick: () => end(job) }),
  ];
  return section(
    screenHead({ title: "Jobs", detail: "Counts, exports and deletions of all matches. They begin on Records, go on by themselves, and are remembered for a day.", actions: [button({ label: "Refresh", icon: "refresh", onclick: jobs.reload })] }),
    view(jobs, {
      isEmpty: (data) => data.jobs.length === 0 && data.nodes.every((node) => !node.problem),
      empty: () => empty({ icon: "job", title: "No jobs", text: "Count, export or delete all matches of a query on Records.", action: a({ class: "button primary", href: address({ screen: "records", params: {} }) }, "Go to Records") }),
      show: ({ nodes }) => [
        nodes.filter((node) => node.problem).map((node) => p({ class: "notice warn" }, `Node ${node.node} is missing here: ${node.problem}`)),
        table({ caption: "Jobs", isWrapped: true, key: (job) => job.id, rows: () => jobs.data.value?.jobs ?? [], columns: () => [
          { label: "Began", class: "nowrap", cell: (job) => span({ class: "muted" }, timeAgo(job.began)) },
          { label: "Job", class: "nowrap", cell: (job) => strong(kinds[job.kind] ?? job.kind) },
          { label: "Of", class: "grow", cell: (job) => [job.recordType ?? "Another's query", span({ class: "muted" }, `${job.recordType ? ` · ${job.filters ? plural(job.filters, "filter") : "all records"}` : ""} · ${job.database}${job.user && job.database === "private" ? ` of ${job.user}` : ""}`)] },
          { label: "State", cell: (job) => div(badge(job.state, tones[job.state]), job.problem || job.waiting ? p({ class: "muted small" }, job.waiting ? `Waits: ${job.waiting}` : job.problem.reason) : null) },
          { label: "Records", class: "number", cell: (job) => [count(job.records), job.left ? span({ class: "muted" }, `, ${count(job.left)} left`) : null] },
          { label: "Size", class: "number", cell: (job) => (job.bytes ? bytes(job.bytes) : "") },
          { label: "By", class: "nowrap", cell: (job) => span({ class: "muted" }, job.by) },
          { label: "Node", class: "number", cell: (job) => job.node },
          { ...actionsColumn, cell: tools },
        ] }),
      ],
    }));
}
