export type MimePart = { readonly name: string; readonly contentType: string; readonly content: string };

/**
 * The MIME boundary is a constant, so that the same parts always give the same bytes. The MIME boundary cannot occur in a body: every body is base64,
 * which contains no hyphen, and each delimiter begins with hyphens.
 */
const BOUNDARY = "=_muster-first-boot";

const base64Lines = (content: string): string =>
  (
    Buffer.from(content, "utf8")
      .toString("base64")
      .match(/.{1,76}/g) ?? []
  ).join("\n");

const mimePart = (part: MimePart): string =>
  [
    `--${BOUNDARY}`,
    `Content-Type: ${part.contentType}; charset="utf-8"`,
    "MIME-Version: 1.0",
    "Content-Transfer-Encoding: base64",
    `Content-Disposition: attachment; filename="${part.name}"`,
    "",
    base64Lines(part.content),
  ].join("\n");

/** The names of the MIME parts are constants of this folder, so the names need no quoting. */
export const mimeMultipart = (parts: readonly MimePart[]): string =>
  [
    `Content-Type: multipart/mixed; boundary="${BOUNDARY}"`,
    "MIME-Version: 1.0",
    `Number-Attachments: ${parts.length}`,
    "",
    ...parts.map(mimePart),
    `--${BOUNDARY}--`,
    "",
  ].join("\n");
