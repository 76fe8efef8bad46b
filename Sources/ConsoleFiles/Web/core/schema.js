/** What the console knows about schemas: types of fields, which comparison needs which index, a schema as text. */

/**
 * @typedef {{index: string, ready?: boolean, done?: number, total?: number}} Index
 * @typedef {{name: string, type: string, system: boolean, indexes: Index[]}} Field
 * @typedef {{role: string, permissions: string[]}} Grant
 * @typedef {{name: string, fields: Field[], grants: Grant[]}} RecordType
 * @typedef {{version: number, roles: string[], types: RecordType[]}} Schema
 */

export const baseTypes = ["STRING", "INT64", "DOUBLE", "TIMESTAMP", "LOCATION", "REFERENCE", "ASSET", "BYTES"];

/** What people call the types. @type {Record<string, string>} */
const typeNames = {
  STRING: "String", INT64: "Int(64)", DOUBLE: "Double", TIMESTAMP: "Date/Time", LOCATION: "Location",
  REFERENCE: "Reference", ASSET: "Asset", BYTES: "Bytes", NUMBER: "Number",
};

/** @param {string} type such as "LIST<ENCRYPTED STRING>" */
export function parseType(type) {
  const list = /^LIST<(.*)>$/.exec(type);
  const inner = list ? list[1] : type;
  const isEncrypted = /\bENCRYPTED\b/.test(type);
  const base = inner.replace("ENCRYPTED ", "").replace(/ PREFERRED AS .*/, "").trim();
  return { base, isList: list !== null, isEncrypted };
}

/** @param {{base: string, isList: boolean, isEncrypted: boolean}} type */
export function typeText({ base, isList, isEncrypted }) {
  const member = isEncrypted ? `ENCRYPTED ${base}` : base;
  return isList ? `LIST<${member}>` : member;
}

/** @param {string} type */
export function typeName(type) {
  const { base, isList, isEncrypted } = parseType(type);
  return `${isEncrypted ? "Encrypted " : ""}${typeNames[base] ?? base}${isList ? " (List)" : ""}`;
}

/** The type in requests for data: `INT64_LIST` for `LIST<INT64>`. @param {string} type */
export function wireType(type) {
  const { base, isList } = parseType(type);
  return `${base === "ASSET" ? "ASSETID" : base}${isList ? "_LIST" : ""}`;
}

/** The system fields, always there: by the schema's name, the name in queries, its type, and in CloudKit's words. */
export const systemFields = [
  { name: "___recordID", query: "recordName", type: "REFERENCE", label: "recordName" },
  { name: "___createTime", query: "createdTimestamp", type: "TIMESTAMP", label: "createdTimestamp" },
  { name: "___createdBy", query: "createdUserRecordName", type: "REFERENCE", label: "createdUserRecordName" },
  { name: "___modTime", query: "modifiedTimestamp", type: "TIMESTAMP", label: "modifiedTimestamp" },
  { name: "___modifiedBy", query: "modifiedUserRecordName", type: "REFERENCE", label: "modifiedUserRecordName" },
  { name: "___etag", query: null, type: "STRING", label: "recordChangeTag" },
];

/** The name of a field as queries and people have it. @param {string} name */
export const fieldLabel = (name) => systemFields.find((field) => field.name === name)?.label ?? name;

/** A type's fields, with all system fields first. @param {RecordType} type @returns {Field[]} */
export function allFields(type) {
  const system = systemFields.map(
    ({ name, type: fieldType }) =>
      type.fields.find((field) => field.name === name) ?? { name, type: fieldType, system: true, indexes: [] },
  );
  return [...system, ...type.fields.filter((field) => !systemFields.some(({ name }) => name === field.name))];
}

/** @param {Field} field @param {string} index */
export const hasIndex = (field, index) => field.indexes.some((each) => each.index === index);

/** Which indexes a field may have. @param {string} type */
export function possibleIndexes(type) {
  const { base, isList, isEncrypted } = parseType(type);
  if (isEncrypted || base === "ASSET") return [];
  return ["QUERYABLE", ...(base === "STRING" ? ["SEARCHABLE"] : []), ...(isList ? [] : ["SORTABLE"])];
}

/** @type {Record<string, string>} */
export const indexNames = { QUERYABLE: "Queryable", SEARCHABLE: "Searchable", SORTABLE: "Sortable" };

const listComparators = /** @type {const} */ ([
  ["LIST_CONTAINS", "contains"], ["NOT_LIST_CONTAINS", "does not contain"],
]);
const equality = /** @type {const} */ ([
  ["EQUALS", "is"], ["NOT_EQUALS", "is not"], ["IN", "is one of"], ["NOT_IN", "is none of"],
]);
const order = /** @type {const} */ ([
  ["LESS_THAN", "<"], ["LESS_THAN_OR_EQUALS", "≤"], ["GREATER_THAN", ">"], ["GREATER_THAN_OR_EQUALS", "≥"],
]);

/** The comparisons of a type, each with the index that it needs. @param {string} type */
export function comparators(type) {
  const { base, isList } = parseType(type);
  /** @type {{name: string, label: string, index: string}[]} */ const found = [];
  const add = (/** @type {readonly (readonly [string, string])[]} */ pairs, index) =>
    pairs.forEach(([name, label]) => found.push({ name, label, index }));
  if (isList) add(listComparators, "QUERYABLE");
  else if (base === "LOCATION") add([["NEAR", "is near"]], "QUERYABLE");
  else {
    add(equality, "QUERYABLE");
    if (base === "STRING") add([["BEGINS_WITH", "begins with"], ["NOT_BEGINS_WITH", "does not begin with"]], "QUERYABLE");
    if (base !== "REFERENCE") add(order, "SORTABLE");
  }
  if (base === "STRING") {
    add([["CONTAINS_ALL_TOKENS", "has all words"], ["CONTAINS_ANY_TOKENS", "has any word"]], "SEARCHABLE");
  }
  return found;
}

/** In quotation marks any name stands for itself, words of the language too. @param {string} name */
const quoted = (name) => `"${name}"`;

/** The schema in the schema language, as an import takes it. @param {Schema} schema */
export function schemaText(schema) {
  const roles = schema.roles.map((role) => `    CREATE ROLE ${quoted(role)};\n`).join("");
  const types = schema.types.map((type) => {
    const fields = type.fields.map((field) =>
      [`        ${quoted(field.name)} ${field.type}`, ...field.indexes.map((each) => each.index)].join(" "));
    const grants = type.grants
      .filter((grant) => grant.permissions.length > 0)
      .map((grant) => `        GRANT ${grant.permissions.join(", ")} TO ${quoted(grant.role)}`);
    return `    RECORD TYPE ${quoted(type.name)} (\n${[...fields, ...grants].join(",\n")}\n    );\n`;
  });
  return `DEFINE SCHEMA\n\n${roles}\n${types.join("\n")}`;
}

/** @param {string} name */
export const isValidName = (name) => /^[A-Za-z][A-Za-z0-9_]{0,254}$/.test(name);
