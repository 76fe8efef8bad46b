/** Many records at once: all matches of a query counted, exported or deleted, and a file imported after a dry run. */
import { signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, lookupRecords, RequestError } from "../core/api.js";
import { asRequestError } from "../core/resource.js";
import { here, recordsHere } from "../core/router.js";
import { runJob, saveResult } from "../core/jobs.js";
import { modifyMany } from "../core/matches.js";
import { fromCell, parseCSV } from "../core/csv.js";
import { allFields, wireType } from "../core/schema.js";
import { count, plural } from "../core/format.js";
import { button, checkbox, errorBox, toast } from "../elements/parts.js";
import { confirm, openDialog } from "../elements/dialog.js";
import { table } from "../elements/table.js";

const { code, div, input, label, li, p, progress, span, strong, ul } = html;

/** Importing is for so many records at most; more is work for the command line. */
const manyMax = 10_000;
/** What is done sooner is told without a dialog. */
const patience = 300;
const linesShownMax = 50;

/**
 * Does a job, and shows how far it is where that takes a while; closing it cancels the job.
 * @param {"count" | "export"} kind @param {any} body @param {{title: string, verb: string, format?: string, done: (job: any) => string}} options
 */
async function watched(kind, body, { title, verb, format, done }) {
  const abort = new AbortController();
  const job = signal(null);
  const outcome = runJob(kind, body, { format, signal: abort.signal, told: (next) => (job.value = next) }).then((ended) => ({ text: done(ended) }), (error) => ({ error }));
  const soon = await Promise.race([outcome, new Promise((ready) => setTimeout(ready, patience))]);
  if (!soon) {
    await openDialog({ title, content: (close) => {
      void outcome.then(() => close());
      return [div({ class: "dialog-body" }, div({ class: "stack", role: "status" }, progress({ "aria-label": verb }),
        () => span(`${plural(job.value?.records ?? 0, "record")} ${verb}${job.value?.waiting ? `. It waits: ${job.value.waiting}` : "…"}`))),
      div({ class: "dialog-foot" }, button({ label: "Cancel", onclick: () => close() }))];
    } });
    if (job.peek()?.state === "running") abort.abort();
  }
  const { text, error } = await outcome;
  if (text) toast(text);
  else if (!abort.signal.aborted) toast(asRequestError(error).message, "bad");
}

/** @param {any} body */
export const countAll = (body) =>
  watched("count", body, { title: `Counting ${body.query.recordType}`, verb: "counted", done: (job) => `${plural(job.records, "record")} match${job.records === 1 ? "es" : ""}` });

/** @param {any} body @param {"csv" | "json"} format */
export const exportMatches = (body, format) =>
  watched("export", body, { title: `Exporting ${body.query.recordType}`, verb: "written", format, done: (job) => `Exported ${plural(job.records, "record")} to ${saveResult(job)}` });

/** Asks with the count of them, and says how far it is. @param {any} body @param {() => void} reload */
export async function deleteMatches(body, reload) {
  const abort = new AbortController();
  const at = recordsHere();
  const [counted, found, failure, deleted] = [signal(null), signal(null), signal(null), signal(null)];
  void runJob("count", body, { at, signal: abort.signal, told: (job) => (counted.value = job) }).then((job) => (found.value = job.records), (error) => !abort.signal.aborted && (failure.value = asRequestError(error)));
  const { query: { recordType, filterBy = [] } } = body;
  const { container, environment } = at.place;
  await confirm({
    title: () => failure.value ? "They cannot be counted" : found.value === null ? `Counting ${recordType} records…` : `Delete ${plural(found.value, `${recordType} record`)}?`, action: "Delete them all", typed: environment === "production" ? container : null,
    denied: () => (found.value ? null : "Nothing is counted yet."),
    text: div({ class: "stack" },
      p(filterBy.length ? `All that match ${plural(filterBy.length, "filter")}. ` : "No filter is set: these are all records of the type. ", "Records that refer to them with “delete this too” go with them. One by one they can be restored as long as their versions are kept, where the container keeps any. One that is changed meanwhile stays."),
      () => failure.value ? errorBox(failure.value) : found.value === null ? span({ class: "muted", role: "status" }, `${plural(counted.value?.records ?? 0, "record")} so far`) : null,
      () => deleted.value ? div({ class: "stack", role: "status" }, progress({ max: found.value, value: deleted.value.records, "aria-label": "Deleted" }), span({ class: "muted" }, `${count(deleted.value.records)} of ${count(found.value)} deleted${deleted.value.waiting ? `. It waits: ${deleted.value.waiting}` : ""}`)) : null),
    submit: async () => {
      try {
        const job = await runJob("delete", body, { at, signal: abort.signal, told: (next) => (deleted.value = next) });
        toast(`Deleted ${plural(job.records, "record")}${job.left ? `; ${count(job.left)} left: ${job.problem?.reason}` : ""}`, job.left ? "bad" : "good");
      } catch (error) {
        if (!abort.signal.aborted) throw error;
        toast(`Cancelled after ${plural(deleted.peek()?.records ?? 0, "record")}`, "bad");
      } finally {
        reload();
      }
    },
  });
  abort.abort();
}

/**
 * What a file has: records as requests have them, and the lines that are none.
 * @param {string} text @param {boolean} isJSON @param {import("../core/schema.js").RecordType} type
 */
function readFile(text, isJSON, type) {
  const known = new Map(allFields(type).filter((field) => !field.system && !field.name.startsWith("___")).map((field) => [field.name, field.type]));
  const [records, problems, skipped] = [[], [], new Set()];
  const take = (line, recordName, values, parent) => {
    const fields = {};
    try {
      for (const [name, value] of values) {
        const fieldType = known.get(name);
        if (!fieldType) throw new Error(`${type.name} has no field ${name}`);
        if (/\bASSET\b/.test(fieldType)) skipped.add(name);
        else fields[name] = { value: typeof value === "string" && !isJSON ? fromCell(value, fieldType) : value, type: wireType(fieldType) };
      }
      records.push({ line, recordName: recordName || undefined, fields, parent });
    } catch (error) {
      problems.push({ line, reason: error.message });
    }
  };
  if (isJSON) {
    const list = JSON.parse(text);
    if (!Array.isArray(list)) throw new Error("A list of records is expected.");
    list.forEach((record, index) => {
      if (record.recordType && record.recordType !== type.name) problems.push({ line: index + 1, reason: `it is a ${record.recordType}` });
      else take(index + 1, record.recordName, Object.entries(record.fields ?? {}).map(([name, field]) => [name, field?.value ?? null]), record.parent);
    });
    return { records, problems, skipped };
  }
  const [head, ...rows] = parseCSV(text.replace(/^\uFEFF/, ""));
  if (!head) throw new Error("The file is empty.");
  for (const { line, cells } of rows) {
    if (cells.length !== head.cells.length) problems.push({ line, reason: `${plural(cells.length, "cell")}, and the first line has ${count(head.cells.length)}` });
    else take(line, cells[head.cells.indexOf("recordName")], head.cells.map((name, index) => [name, cells[index]]).filter(([name, value]) => name !== "recordName" && value !== ""));
  }
  return { records, problems, skipped };
}

/** The names of records that are there already. @param {any[]} records @param {ReturnType<typeof recordsHere>} at */
async function existing(records, at) {
  const names = records.map((record) => record.recordName).filter(Boolean);
  const found = new Set();
  for (let start = 0; start < names.length; start += 200) {
    const answer = await call(lookupRecords, { place: at.place, body: { ...at.zone, records: names.slice(start, start + 200).map((recordName) => ({ recordName })), desiredKeys: [] } });
    answer.records.filter((record) => !record.serverErrorCode).forEach((record) => found.add(record.recordName));
  }
  return found;
}

/** Takes a file, shows what it would do, and does it. @param {import("../core/schema.js").RecordType} type @param {() => void} reload */
export function importRecords(type, reload) {
  const at = recordsHere();
  const error = signal(null);
  const plan = signal(null);
  const done = signal(null);
  const updates = signal(true);
  const read = async (file) => {
    if (!file) return;
    [error.value, plan.value, done.value] = [null, null, null];
    try {
      const isJSON = /\.json$/i.test(file.name);
      const content = readFile(await file.text(), isJSON, type);
      if (content.records.length > manyMax) throw new Error(`These are ${count(content.records.length)} records; at most ${count(manyMax)} are imported here. The command “zonekeeper record import” takes any number.`);
      plan.value = { name: file.name, isJSON, ...content, there: await existing(content.records, at) };
    } catch (failure) {
      error.value = failure instanceof RequestError ? failure : new RequestError(0, { serverErrorCode: "NOT_READABLE", reason: failure.message });
    }
  };
  const isThere = (record) => plan.peek().there.has(record.recordName);
  const chosen = () => (plan.value?.records ?? []).filter((record) => updates.value || !plan.value.there.has(record.recordName));
  const run = async () => {
    const list = chosen();
    const outcome = { saved: 0, failed: [] };
    const operations = list.map((record) => ({ operationType: isThere(record) ? "forceUpdate" : "create", record: { recordType: type.name, recordName: record.recordName, fields: record.fields, parent: record.parent } }));
    let answered = 0;
    try {
      await modifyMany(operations, { at, done: (answers) => {
        answers.forEach((answer, index) => (answer.serverErrorCode ? outcome.failed.push({ line: list[answered + index].line, reason: `${answer.serverErrorCode}: ${answer.reason}` }) : (outcome.saved += 1)));
        answered += answers.length;
        done.value = { ...outcome, isOver: false };
      } });
      done.value = { ...outcome, isOver: true };
      toast(`Imported ${plural(outcome.saved, "record")}`);
    } catch (failure) {
      error.value = asRequestError(failure);
      done.value = { ...outcome, isOver: true };
    }
    reload();
  };
  return openDialog({ title: `Import ${type.name}`, class: "wide", content: (close) => [
    div({ class: "dialog-body" },
      p({ class: "hint" }, "A CSV file whose first line names the fields (", code("recordName"), " may be one), or JSON as an export makes it. Nothing is saved before you have seen what would be."),
      label({ class: "drop", ondragover: (event) => event.preventDefault(), ondrop: (event) => { event.preventDefault(); void read(event.dataTransfer?.files[0]); } },
        () => plan.value?.name ?? "Drop a file here, or choose one", input({ type: "file", class: "hidden-text", accept: ".csv,.json", "aria-label": "File of records", onchange: (event) => read(event.target.files[0]) })),
      () => (error.value ? errorBox(error.value, { title: "The import did not work" }) : null),
      () => (plan.value ? dryRun(plan.value, updates) : null),
      () => (done.value ? outcomeOf(done.value, chosen().length) : null)),
    div({ class: "dialog-foot" }, button({ label: "Close", onclick: () => close() }),
      button({ label: () => (plan.value ? `Import ${plural(chosen().length, "record")}` : "Import"), kind: "primary", onclick: run,
        denied: () => (done.value ? "This file was imported." : chosen().length ? null : "There is nothing to import yet.") }))] });
}

/** @param {any} plan @param {import("../core/signal.js").Signal<boolean>} updates */
function dryRun({ records, problems, skipped, there, isJSON }, updates) {
  const known = records.filter((record) => there.has(record.recordName)).length;
  return div({ class: "stack", role: "region", "aria-label": "Dry run" },
    ul({ class: "plain-list" }, li(strong(count(records.length - known)), " new"), li(strong(count(known)), " there already"), problems.length ? li({ class: "bad-text" }, strong(count(problems.length)), " not readable, left out") : null),
    known ? checkbox({ label: "Give those that are there the file’s values", checked: updates.peek(), onchange: (isOn) => (updates.value = isOn) }) : null,
    skipped.size ? p({ class: "hint" }, `Files are not imported: ${[...skipped].join(", ")} stay as they are.`) : null,
    problems.length ? faults(problems, isJSON ? "Record" : "Line") : null);
}

/** @param {{line: number, reason: string}[]} list @param {string} what */
const faults = (list, what) => [
  table({ caption: "What is left out", isWrapped: true, key: (row) => row.line, rows: () => list.slice(0, linesShownMax), columns: () => [
    { label: what, class: "nowrap", cell: (row) => row.line }, { label: "Why", class: "grow", cell: (row) => row.reason }] }),
  list.length > linesShownMax ? p({ class: "hint" }, `and ${count(list.length - linesShownMax)} more.`) : null];

/** @param {any} done @param {number} total */
const outcomeOf = ({ saved, failed, isOver }, total) =>
  div({ class: "stack", role: "status" }, progress({ max: total, value: saved + failed.length, "aria-label": "Imported" }),
    span(`${count(saved)} of ${count(total)} saved${failed.length ? `, ${count(failed.length)} refused` : ""}${isOver ? "." : "…"}`), failed.length ? faults(failed, "Line") : null);

/** @param {string[]} names @param {(name: string) => void} deleted */
export async function deleteSelected(names, deleted) {
  const [at, opened] = [recordsHere(), here.peek()];
  const { container, environment } = at.place;
  await confirm({
    title: `Delete ${plural(names.length, "record")}?`, action: "Delete", typed: environment === "production" ? container : null,
    text: div(ul({ class: "plain-list" }, names.slice(0, 5).map((name) => li(code(name)))), names.length > 5 ? p(`and ${count(names.length - 5)} more.`) : null,
      p("Records that refer to them with “delete this too” go with them. One by one they can be restored as long as their versions are kept, where the container keeps any.")),
    submit: async () => {
      await modifyMany(names.map((recordName) => ({ operationType: "forceDelete", record: { recordName } })), { at, done: (answers) => {
        if (here.peek() === opened) answers.filter((answer) => answer.deleted).forEach((answer) => deleted(answer.recordName));
        const failed = answers.find((answer) => answer.serverErrorCode);
        if (failed) throw new RequestError(200, { ...failed, reason: `${failed.recordName}: ${failed.reason}` });
      } });
      toast(`Deleted ${plural(names.length, "record")}`);
    },
  });
}
