/** Reads comma-separated values, as exports write them. */
import { parseType } from "./schema.js";

/** The cells of each line, and the number of the line where it begins. @param {string} source */
export function parseCSV(source) {
  const rows = [];
  let [cells, value, isQuoted, line, start] = [[], "", false, 1, 1];
  const endRow = () => {
    cells.push(value);
    if (cells.length > 1 || cells[0] !== "") rows.push({ line: start, cells });
    [cells, value, start] = [[], "", line];
  };
  for (let at = 0; at < source.length; at += 1) {
    const sign = source[at];
    if (sign === "\n") line += 1;
    if (isQuoted) {
      if (sign !== '"') value += sign;
      else if (source[at + 1] === '"') value += source[(at += 1)];
      else isQuoted = false;
    } else if (sign === '"' && value === "") isQuoted = true;
    else if (sign === ",") {
      cells.push(value);
      value = "";
    } else if (sign === "\n") endRow();
    else if (sign !== "\r") value += sign;
  }
  if (value !== "" || cells.length) endRow();
  if (isQuoted) throw new Error(`Line ${start}: a quotation mark is not closed.`);
  return rows;
}

/** What a cell says, without the mark that keeps spreadsheets from taking it for a formula. @param {string} text */
const plain = (text) => (/^'+[=+\-@\t\r]/.test(text) ? text.slice(1) : text);

/**
 * The value of a cell, as a request has it; throws where it cannot be one.
 * @param {string} given @param {string} type as in the schema
 */
export function fromCell(given, type) {
  const { base, isList, isEncrypted } = parseType(type);
  const source = plain(given);
  if (isEncrypted) throw new Error("encrypted fields are kept in private databases only");
  if (!isList) return member(source, base);
  const list = source.startsWith("[") ? JSON.parse(source) : source.split(/\s*[;|]\s*/);
  return list.map((one) => member(String(one), base));
}

/** @param {string} source @param {string} base */
function member(source, base) {
  const need = (isRight, what) => {
    if (!isRight) throw new Error(`"${source.slice(0, 40)}" is not ${what}`);
  };
  /** What a short form stands for, or all of it as JSON. @param {any} short */
  const whole = (short) => {
    if (!source.startsWith("{")) return short;
    try {
      return JSON.parse(source);
    } catch {
      return need(false, "a JSON object");
    }
  };
  switch (base) {
    case "INT64":
      need(/^-?\d{1,19}$/.test(source) && BigInt.asIntN(64, BigInt(source)) === BigInt(source), "a whole number of 64 bits");
      return source;
    case "DOUBLE":
      need(source.trim() !== "" && Number.isFinite(Number(source)), "a number");
      return source;
    case "TIMESTAMP": {
      const time = /^-?\d+$/.test(source) ? Number(source) : Date.parse(source);
      need(Number.isFinite(time), "a date, such as 2026-03-01T12:00:00Z");
      return String(time);
    }
    case "LOCATION": {
      const [latitude, longitude] = source.split(",").map(Number);
      const place = whole({ latitude, longitude });
      need(Math.abs(place.latitude) <= 90 && Math.abs(place.longitude) <= 180, "a latitude and a longitude, such as 45.4,12.3");
      return place;
    }
    case "REFERENCE": {
      const reference = whole({ recordName: source, action: "NONE" });
      need(typeof reference.recordName === "string", "the name of a record, or a reference as JSON");
      return reference;
    }
    case "BYTES":
      need(/^[A-Za-z0-9+/]*={0,2}$/.test(source) && source.length % 4 === 0, "Base64");
      return source;
    case "ASSET": throw new Error("files are not imported");
    default: return source;
  }
}
