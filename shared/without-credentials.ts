import type { Secret } from "./secret.ts";

const REDACTED = "[redacted]";
/** Anything shorter would tear unrelated words apart. */
const SHORTEST_SECRET = 4;
/** A longer one is a document, e.g. a host's user-data: an answer repeats lines of it rather than the whole. */
const LONGEST_WORD = 300;
/** So many characters that a text shares with a secret document are no coincidence. */
const PIECE = 16;

/**
 * What looks like a credential although nobody said which ones there are. A token in base64url has small and capital letters and digits. Each is found in
 * time that grows with the text alone, so no name is longer than the bound: `secretsecretsecret...` would else be gone through once for each of its words.
 */
const SHAPES: readonly (readonly [RegExp, string])[] = [
  [
    /((?:secret|password|pass|signature|(?:consumer|access|api|private)_key)\w{0,64}["']?\s*[:=]\s*["']?)[^\s"',}]+/gi,
    `$1${REDACTED}`,
  ],
  [/(token\w{0,64}["']?\s*=\s*["']?|token(?:_\w{1,64}["']?|["'])\s*:\s*["']?)[^\s"',}]+/gi, `$1${REDACTED}`],
  [/(base string: )\S+/gi, `$1${REDACTED}`],
  [/(\b(?:Bearer|Basic) +)[\w.~+/=-]{8,}/gi, `$1${REDACTED}`],
  [/\$(?:[1567]|2[abxy]|g?y)\$[^\s"',;]+/g, REDACTED],
  [/(:\/\/)[^\s/@"']+@/g, `$1${REDACTED}@`],
  // Vault's own, which are shorter.
  [/(?<![\w.-])(?:hv[sbr]|[sbr])\.[\w-]{24,}/g, REDACTED],
  [/(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{32,}/g, REDACTED],
];

/**
 * A text of MAAS's or a host's, without anything that is or looks like a credential: the known secrets however they are escaped or encoded, pieces of
 * secret documents, and the shapes above.
 */
export const withoutCredentials = (text: string, known: readonly Secret[] = []): string =>
  allWithoutCredentials([text], known)[0] ?? "";

/** Of several texts at once, for which long documents are gone through once: an answer of MAAS's that repeats a host's user-data has dozens. */
export function allWithoutCredentials(texts: readonly string[], known: readonly Secret[]): string[] {
  const secrets = known.map((secret) => secret.reveal()).filter((secret) => secret.length >= SHORTEST_SECRET);
  const words = secrets.flatMap(spellingsOf).sort((a, b) => b.length - a.length);
  let left = texts.map((text) => words.reduce((rest, word) => rest.replaceAll(word, REDACTED), text));
  for (const secret of secrets.filter(({ length }) => length > LONGEST_WORD))
    for (const document of documentsIn(secret)) left = withoutPiecesOf(document, left);
  return left.map((text) => SHAPES.reduce((rest, [shape, instead]) => rest.replace(shape, instead), text));
}

/** As JSON, an address, a form, a page, Python's repr and base64 write it. */
function spellingsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const page = secret.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
  return [
    ...new Set([
      secret,
      json,
      json.replaceAll("'", "\\'"),
      secret.replaceAll("\\", "\\\\").replaceAll("'", "\\'"),
      encodeURIComponent(secret.toWellFormed()),
      new URLSearchParams([["", secret]]).toString().slice(1),
      page.replaceAll("'", "&#x27;"),
      page.replaceAll("'", "&#39;"),
      toBase64(secret),
    ]),
  ];
}

const toBase64 = (text: string): string =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));

/** The text, what it says if it is base64, and what its own parts in base64 say. */
function documentsIn(secret: string): string[] {
  const message = fromBase64(secret);
  if (message === null) return [secret];
  const parts = message.match(/(?:^[A-Za-z0-9+/=]{20,}$\n?)+/gm) ?? [];
  return [secret, message, ...parts.flatMap((part) => fromBase64(part) ?? [])];
}

function fromBase64(text: string): string | null {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
  } catch {
    // Not base64: it is what it is.
    return null;
  }
}

/** In time that grows with the lengths of document and texts, not with their product. */
function withoutPiecesOf(document: string, texts: readonly string[]): string[] {
  const pieces = new Set<string>();
  for (const text of texts) for (let at = 0; at + PIECE <= text.length; at += 1) pieces.add(text.slice(at, at + PIECE));
  const shared = new Set<string>();
  for (let at = 0; at + PIECE <= document.length; at += 1) {
    const piece = document.slice(at, at + PIECE);
    if (pieces.has(piece)) shared.add(piece);
  }
  return texts.map((text) => withoutPieces(shared, text));
}

function withoutPieces(shared: ReadonlySet<string>, text: string): string {
  let result = "";
  let at = 0;
  while (at < text.length) {
    let end = at;
    for (let next = at; next <= end && next + PIECE <= text.length; next += 1)
      if (shared.has(text.slice(next, next + PIECE))) end = next + PIECE;
    result += end > at ? REDACTED : text[at];
    at = Math.max(end, at + 1);
  }
  return result;
}
