import { gunzipSync } from "node:zlib";

export interface UserDataPart {
  filename: string;
  contentType: string;
  content: Buffer;
}

interface Message {
  headers: Map<string, string>;
  body: string;
}

/**
 * Splits a MIME message into headers and body, and joins a header's continuation lines. In the parser of user data, each byte of a MIME message is
 * one Latin-1 character.
 */
function parseMessage(text: string): Message {
  const end = /\r?\n\r?\n/.exec(text);
  const head = end === null ? text : text.slice(0, end.index);
  const body = end === null ? "" : text.slice(end.index + end[0].length);
  const headers = new Map<string, string>();
  for (const line of head.replace(/\r?\n[ \t]+/g, " ").split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return { headers, body };
}

function parameter(header: string, name: string): string | null {
  const match = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s]+))`, "i").exec(header);
  return match?.[1]?.replace(/\\(.)/g, "$1") ?? match?.[2] ?? null;
}

function decode(body: string, encoding: string): Buffer {
  switch (encoding.toLowerCase()) {
    case "base64":
      return Buffer.from(body, "base64");
    case "quoted-printable": {
      const text = body
        .replace(/=\r?\n/g, "")
        .replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
      return Buffer.from(text, "latin1");
    }
    default:
      return Buffer.from(body, "latin1");
  }
}

function typeByFirstLine(content: Buffer): string {
  const start = content.subarray(0, 64).toString("latin1");
  if (start.startsWith("#!")) return "text/x-shellscript";
  if (start.startsWith("#cloud-config")) return "text/cloud-config";
  if (start.startsWith("#cloud-boothook")) return "text/cloud-boothook";
  return "text/plain";
}

/** Returns the parts between the delimiters of a MIME body. The line break before a MIME delimiter belongs to the delimiter. */
function splitParts(body: string, boundary: string): string[] {
  const escaped = boundary.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pieces = `\n${body}`.split(new RegExp(`\\r?\\n--${escaped}(--)?[ \\t]*(?=\\r?\\n|$)`));
  const parts: string[] = [];
  // Between two pieces, `split` also returns the text of the regular expression's group, which is "--" for the last delimiter.
  for (let index = 2; index < pieces.length; index += 2) {
    if (pieces[index - 1] === "--") break;
    parts.push((pieces[index] ?? "").replace(/^\r?\n/, ""));
  }
  return parts;
}

function unpackMessage(message: Message, parts: UserDataPart[]): void {
  const contentType = message.headers.get("content-type") ?? "text/plain";
  const boundary = parameter(contentType, "boundary");
  if (contentType.toLowerCase().startsWith("multipart/") && boundary !== null) {
    for (const inner of splitParts(message.body, boundary)) unpackMessage(parseMessage(inner), parts);
    return;
  }
  const content = decode(message.body, message.headers.get("content-transfer-encoding") ?? "8bit");
  const named = parameter(message.headers.get("content-disposition") ?? "", "filename");
  const declared = (contentType.split(";")[0] ?? "").trim().toLowerCase();
  parts.push({
    filename: named ?? `part-${String(parts.length + 1).padStart(3, "0")}`,
    contentType: declared === "text/plain" ? typeByFirstLine(content) : declared,
    content,
  });
}

/** Unpacks user data, which is plain or compressed with gzip, and is a single document or a MIME message with several parts. */
export function unpackUserData(bytes: Buffer): UserDataPart[] {
  const data = bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes;
  if (data.length === 0) return [];
  const text = data.toString("latin1");
  const parts: UserDataPart[] = [];
  const isMessage = /^(content-type|mime-version):/i.test(text.trimStart());
  if (isMessage) unpackMessage(parseMessage(text.trimStart()), parts);
  else parts.push({ filename: "part-001", contentType: typeByFirstLine(data), content: data });
  return parts;
}
