import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { ASSETS, CONTENT_TYPES, INDEX, NONCE_MARK } from "./built-form.ts";

/** The content encodings of the console's files, in the hub's order of preference. */
const ENCODINGS = { br: ".br", gzip: ".gz" } as const;
type Encoding = keyof typeof ENCODINGS;

export interface BuiltFile {
  readonly type: string;
  readonly etag: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly encoded: Readonly<Record<Encoding, Uint8Array<ArrayBuffer>>>;
}

/**
 * A console that is ready for browsers. The hub keeps the built console in memory, so the path of a request names an entry of a map and never a path
 * of the file system.
 */
export interface BuiltConsole {
  readonly document: (nonce: string) => string;
  readonly assets: ReadonlyMap<string, BuiltFile>;
}

export async function readBuiltConsole(folder: string): Promise<BuiltConsole> {
  const html = await readFile(join(folder, INDEX), "utf8");
  const names = await readdir(join(folder, ASSETS));
  const plain = names.filter((name) => CONTENT_TYPES[extname(name)] !== undefined);
  const assets = await Promise.all(
    plain.map(async (name) => [name, await readAsset(join(folder, ASSETS, name), extname(name))] as const),
  );
  return { document: (nonce) => html.replaceAll(NONCE_MARK, nonce), assets: new Map(assets) };
}

async function readAsset(file: string, extension: string): Promise<BuiltFile> {
  const bytes = async (end: string) => new Uint8Array(await readFile(`${file}${end}`));
  const plain = await bytes("");
  return {
    type: CONTENT_TYPES[extension] ?? "application/octet-stream",
    etag: `"${createHash("sha256").update(plain).digest("base64url").slice(0, 27)}"`,
    plain,
    encoded: { br: await bytes(ENCODINGS.br), gzip: await bytes(ENCODINGS.gzip) },
  };
}

/**
 * Returns the content encoding for a client's Accept-Encoding header, or null for the uncompressed file. A client refuses an encoding by giving it
 * the weight 0 (`q=0`) in the Accept-Encoding header.
 */
export function encodingFor(accepted: string | undefined): Encoding | null {
  const offers = (accepted ?? "").split(",").map((offer) => offer.trim().toLowerCase());
  const takes = (name: string): boolean =>
    offers.some((offer) => {
      const [encoding, ...weights] = offer.split(";").map((part) => part.trim());
      return encoding === name && !weights.some((weight) => /^q=0([.]0*)?$/.test(weight));
    });
  return (Object.keys(ENCODINGS) as Encoding[]).find(takes) ?? null;
}
