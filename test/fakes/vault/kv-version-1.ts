import { dataReply, invalid, noContent, notFound, unsupported, type VaultReply } from "./answer.ts";

export class KvVersion1 {
  readonly #entries = new Map<string, object>();

  has(path: string): boolean {
    return this.#entries.has(path);
  }

  answer(method: string, path: string, _query: URLSearchParams, body: unknown): VaultReply {
    if (method === "GET") {
      const entry = this.#entries.get(path);
      if (entry === undefined) throw notFound();
      return dataReply(entry);
    }
    if (method === "DELETE") {
      this.#entries.delete(path);
      return noContent;
    }
    if (method !== "POST" && method !== "PUT") throw unsupported();
    if (typeof body !== "object" || body === null || Object.keys(body).length === 0)
      throw invalid("missing data fields");
    this.#entries.set(path, body);
    return noContent;
  }
}
