import type { IncomingMessage } from "node:http";
import { badFields, Refusal } from "../engine/refusal.ts";
import type { Region } from "../engine/region.ts";
import type { User } from "../state/model.ts";

export interface Reply {
  status: number;
  /** The body of the region's answer, in several strings if it would be too long for one. */
  body: string | Buffer | Iterable<string>;
  contentType: string;
  headers?: Readonly<Record<string, string>>;
}

/** The fields of a request's body or query, with all values of each name in order. */
export class Fields {
  readonly #values: Map<string, string[]>;

  constructor(entries: Iterable<readonly [string, string]>) {
    this.#values = new Map();
    for (const [name, value] of entries) this.#values.set(name, [...(this.#values.get(name) ?? []), value]);
  }

  get(name: string): string | null {
    return this.#values.get(name)?.at(-1) ?? null;
  }

  all(name: string): string[] {
    return this.#values.get(name) ?? [];
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  entries(): [string, string[]][] {
    return [...this.#values];
  }

  /** Returns a boolean form field. Throws a 400 that names the form field when the field's value is no boolean. */
  flag(name: string, otherwise: boolean): boolean {
    const text = this.get(name);
    if (text === null || text === "") return otherwise;
    if (["true", "1", "yes", "on", "y", "t"].includes(text.toLowerCase())) return true;
    if (["false", "0", "no", "off", "n", "f"].includes(text.toLowerCase())) return false;
    throw new Refusal(400, `Invalid ${name}: Value should be 'true' or 'false'`);
  }

  /** The words of a field that holds a comma-separated list. */
  words(name: string): string[] {
    return (this.get(name) ?? "")
      .split(",")
      .map((word) => word.trim())
      .filter((word) => word !== "");
  }

  required(name: string): string {
    const value = this.get(name);
    if (value === null || value === "") throw badFields({ [name]: ["This field is required."] });
    return value;
  }
}

/** One request to the simulated MAAS, with everything that an operation needs to answer it. */
export interface Call {
  region: Region;
  user: User;
  /** The parts of the request's path that the groups of the path's regular expression matched. */
  params: readonly string[];
  query: Fields;
  /** The fields of a request that creates or updates an object, from a form or a JSON body. */
  data: Fields;
  /** The form fields that operations read. MAAS's operations (`?op=`) do not see the fields of a JSON body. */
  form: Fields;
  url: URL;
}

export type Handler = (call: Call) => Reply | Promise<Reply>;

export function json(value: unknown, status = 200): Reply {
  return { status, body: JSON.stringify(value), contentType: "application/json; charset=utf-8" };
}

export function plain(text: string, status = 200): Reply {
  return { status, body: text, contentType: "text/plain" };
}

export function fromRefusal(refusal: Refusal): Reply {
  return { status: refusal.status, body: refusal.body, contentType: refusal.contentType, headers: refusal.headers };
}

/** The largest body of a request, in bytes, because nginx in front of a real MAAS refuses larger bodies. */
const MAX_BODY_BYTES = 10 * 1024 * 1024;

export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  if (size > MAX_BODY_BYTES)
    throw new Refusal(413, "<html><head><title>413 Request Entity Too Large</title></head></html>", "text/html");
  return Buffer.concat(chunks);
}

function jsonEntries(value: unknown): [string, string][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([name, one]): [string, string][] => {
    if (one === null || one === undefined) return [];
    const values: unknown[] = Array.isArray(one) ? one : [one];
    return values.map((each): [string, string] => [
      name,
      typeof each === "object" ? JSON.stringify(each) : String(each),
    ]);
  });
}

/**
 * Parses the body of a request into fields. An uploaded file becomes a field with the file's text, because MAAS's operations read uploaded files as
 * fields.
 */
export async function parseBody(contentType: string, body: Buffer): Promise<{ data: Fields; form: Fields }> {
  if (body.length === 0) return { data: new Fields([]), form: new Fields([]) };
  if (contentType.startsWith("application/json")) {
    try {
      return { data: new Fields(jsonEntries(JSON.parse(body.toString("utf8")))), form: new Fields([]) };
    } catch {
      throw new Refusal(400, "Bad Request");
    }
  }
  if (contentType.startsWith("multipart/form-data")) {
    const parsed = await new Response(new Uint8Array(body), { headers: { "content-type": contentType } }).formData();
    const entries: [string, string][] = [];
    for (const [name, value] of parsed) entries.push([name, typeof value === "string" ? value : await value.text()]);
    const fields = new Fields(entries);
    return { data: fields, form: fields };
  }
  const fields = new Fields(new URLSearchParams(body.toString("utf8")));
  return { data: fields, form: fields };
}
