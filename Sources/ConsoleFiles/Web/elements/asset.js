/** The editor of an ASSET: a file is dropped or chosen, sent at once, and kept with the record when that is saved. */
import { onCleanup, signal } from "../core/signal.js";
import { html } from "../core/dom.js";
import { call, download, ownAddress, upload } from "../core/api.js";
import { asRequestError } from "../core/resource.js";
import { place } from "../core/router.js";
import { bytes, cut } from "../core/format.js";
import { errorBox } from "./parts.js";
import { fileDrop } from "./filedrop.js";
import { icon } from "./icon.js";

const { a, code, div, img, span } = html;

/** Files of at most this many bytes are shown as pictures. */
const previewBytesMax = 5_000_000;

/** What a picture's first bytes are; nothing else is shown. @type {[string, number[]][]} */
const pictures = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47]], ["image/jpeg", [0xff, 0xd8, 0xff]], ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", [0x52, 0x49, 0x46, 0x46]],
];

/** @param {import("./fields.js").EditorOptions} options */
export function assetEditor({ value, onchange, isReadOnly, label, id, context }) {
  const asset = signal(value ?? null);
  const error = signal(null);
  const sending = signal("");
  const send = async (file) => {
    if (!file || isReadOnly) return;
    sending.value = file.name;
    error.value = null;
    try {
      const token = { recordType: context.recordType, fieldName: context.fieldName, recordName: context.recordName, size: file.size };
      const { tokens } = await call("POST /database/1/{container}/{environment}/{database}/assets/upload", { place: place.peek(), body: { tokens: [token] } });
      const { singleFile } = await upload(tokens[0].url, file);
      asset.value = { ...singleFile, name: file.name, local: file };
      onchange(singleFile);
    } catch (failure) {
      error.value = asRequestError(failure);
    } finally {
      sending.value = "";
    }
  };
  return div({ class: "stack" },
    () => asset.value ? div({ class: "asset" }, preview(asset.value),
      div({ class: "asset-words" }, span(asset.value.name ?? bytes(asset.value.size)),
        code({ class: "muted small", title: asset.value.fileChecksum }, cut(asset.value.fileChecksum, 16)),
        asset.value.downloadURL
          ? a({ class: "link", href: ownAddress(asset.value.downloadURL), download: context.fieldName }, "Download ", bytes(asset.value.size))
          : span({ class: "hint" }, `${bytes(asset.value.size)}, sent; kept when you save`))) : null,
    isReadOnly ? (asset.peek() ? null : span({ class: "muted" }, "not set")) : fileDrop({
      id, label: `${label}, file`, onfiles: ([file]) => void send(file),
      words: () => (sending.value ? `Sending ${sending.value}…` : asset.value ? "Drop another file, or choose one" : "Drop a file here, or choose one") }),
    () => (error.value ? errorBox(error.value, { title: "The file was not sent" }) : null));
}

/** A small picture of the file, where it is one. @param {any} asset */
function preview(asset) {
  const source = signal("");
  if (asset.size <= previewBytesMax && (asset.local || asset.downloadURL)) {
    void (async () => {
      const blob = asset.local ?? (await download(asset.downloadURL));
      const head = new Uint8Array(await blob.slice(0, 4).arrayBuffer());
      const type = pictures.find(([, start]) => start.every((byte, index) => head[index] === byte))?.[0];
      if (type) source.value = URL.createObjectURL(new Blob([blob], { type }));
    })().catch(() => {});
    onCleanup(() => source.peek() && URL.revokeObjectURL(source.peek()));
  }
  return () => (source.value ? img({ src: source.value, alt: "", class: "preview" }) : div({ class: "preview none" }, icon("asset")));
}
