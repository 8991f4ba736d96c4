import type { Secret } from "./secret.ts";

const REDACTED = "[redacted]";
/** The length below which a secret is not redacted, because so short a secret would also match parts of harmless words. */
const SHORTEST_SECRET = 4;
/**
 * For a secret of more than `LONGEST_WORD` characters, for example user-data, the redaction also removes pieces of the secret. An error text of
 * another system may repeat only some lines of a long secret.
 */
const LONGEST_WORD = 300;
/** A text and a secret document share a piece of the document if `PIECE` characters in a row are equal. */
const PIECE = 16;

/**
 * Patterns that find credentials in a text even if Muster does not know them. A token in base64url is recognized by its length and its mixture of
 * small letters, capital letters and digits. The patterns for credentials limit the length of names, so that the time of a search grows only in
 * proportion to the text's length. If a pattern allowed names of any length, a search in `secretsecretsecret...` would read the rest of the text
 * again for each `secret`, which takes quadratic time.
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
  // Tokens of HashiCorp Vault have a pattern of their own, because they may be shorter than the tokens that the general pattern for tokens finds.
  [/(?<![\w.-])(?:hv[sbr]|[sbr])\.[\w-]{24,}/g, REDACTED],
  [/(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{32,}/g, REDACTED],
];

/** Removes from a text of MAAS or a host known secrets in every encoding, pieces of secret documents, and text that looks like a credential. */
export const withoutCredentials = (text: string, known: readonly Secret[] = []): string =>
  allWithoutCredentials([text], known)[0] ?? "";

/**
 * Redacts several texts at once, so that the function processes each long secret document only once. An error of MAAS may contain dozens of texts to
 * redact.
 */
export function allWithoutCredentials(texts: readonly string[], known: readonly Secret[]): string[] {
  const secrets = known.map((secret) => secret.reveal()).filter((secret) => secret.length >= SHORTEST_SECRET);
  const words = secrets.flatMap(spellingsOf).sort((a, b) => b.length - a.length);
  let left = texts.map((text) => words.reduce((rest, word) => rest.replaceAll(word, REDACTED), text));
  for (const secret of secrets.filter(({ length }) => length > LONGEST_WORD))
    for (const document of documentsIn(secret)) left = withoutPiecesOf(document, left);
  return left.map((text) => SHAPES.reduce((rest, [shape, instead]) => rest.replace(shape, instead), text));
}

/** The spellings of a secret in JSON, in a URL, in a form, in HTML, in Python's repr and in base64. */
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

/** Returns the texts that a secret may stand for: the secret itself, the text that its base64 encodes, and the texts that its base64 parts encode. */
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
    // A secret that is not base64 has no decoded form.
    return null;
  }
}

/** The time of `withoutPiecesOf` grows only in proportion to the summed length of the secret document and of all texts. */
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
