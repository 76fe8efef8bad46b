/** Values of records as text and in cells. */
import { html } from "../core/dom.js";
import { bytes, count, cut, plural, time } from "../core/format.js";
import { icon } from "./icon.js";

const { code, span } = html;

/** A value for people, on one line. @param {any} value @param {string} type as in answers, such as "INT64_LIST" */
export function valueText(value, type) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map((one) => valueText(one, type.replace(/_LIST$/, ""))).join(", ");
  switch (type) {
    case "INT64": return String(value);
    case "TIMESTAMP": return time(value);
    case "LOCATION": return `${round(value.latitude)}, ${round(value.longitude)}`;
    case "REFERENCE": return value.recordName;
    case "ASSETID": return bytes(value.size);
    case "BYTES":
    case "ENCRYPTED_BYTES": return bytes(Math.floor((String(value).replaceAll("=", "").length * 3) / 4));
    default: return typeof value === "object" ? JSON.stringify(value) : String(value);
  }
}

/** @param {number} degrees */
const round = (degrees) => String(Math.round(degrees * 1e5) / 1e5);

/**
 * A value in a cell of a table; long ones are cut.
 * @param {{value: any, type: string, isEncrypted?: boolean} | undefined} field
 */
export function cell(field) {
  if (!field) return span({ class: "unset", "aria-label": "not set" }, "–");
  const { value, type } = field;
  if (field.isEncrypted) return span({ class: "muted" }, icon("lock"), " ••••");
  if (Array.isArray(value)) {
    return span({ class: "chips" },
      value.slice(0, 4).map((one) => span({ class: "chip" }, cut(valueText(one, type.replace(/_LIST$/, "")), 24))),
      value.length > 4 ? span({ class: "muted small" }, `+${count(value.length - 4)}`) : null,
      value.length === 0 ? span({ class: "muted" }, "empty list") : null);
  }
  if (value === "") return span({ class: "muted" }, "empty text");
  if (type === "REFERENCE") return code({ class: "reference" }, cut(value.recordName, 40));
  if (type === "ASSETID") return span({ class: "chip" }, icon("asset"), bytes(value.size));
  return cut(valueText(value, type), 160);
}

/** Whether a column of this type is of numbers, which stand at the right. @param {string} type */
export const isNumeric = (type) => type === "INT64" || type === "DOUBLE" || type === "NUMBER";

/** What a record is about, in a few words. @param {any} record */
export function summary(record) {
  const texts = Object.values(record.fields ?? {}).filter((field) => field.type === "STRING" && !field.isEncrypted);
  return cut(texts.slice(0, 3).map((field) => field.value).join(" · "), 90) || plural(Object.keys(record.fields ?? {}).length, "field");
}
