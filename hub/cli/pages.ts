import type { Invocation } from "./arguments.ts";
import type { Operation } from "./description.ts";
import { call, type Target } from "./request.ts";

const MOST_PAGES = 10_000;

/**
 * Returns the present version of the API resource that an operator's command changes. The program `muster` reads the resource's version itself,
 * because an operator at a shell means to change the resource's present state.
 */
export async function presentVersion(target: Target, { path }: Invocation): Promise<string> {
  const invocation = { path, query: new URLSearchParams(), body: null };
  const response = await call(target, { method: "GET", invocation });
  return response.headers.get("etag") ?? "";
}

interface Page {
  readonly items?: readonly Record<string, unknown>[];
  readonly next_cursor?: string | null;
}

/** If the API's answer is not a list, `allPages` returns the answer unchanged. */
export async function allPages(target: Target, operation: Operation, first: Invocation): Promise<Page> {
  const items: Record<string, unknown>[] = [];
  const query = new URLSearchParams(first.query);
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const response = await call(target, { method: operation.method, invocation: { ...first, query } });
    const answer = (await response.json()) as Page;
    if (answer.items === undefined) return answer;
    items.push(...answer.items);
    if (typeof answer.next_cursor !== "string" || answer.items.length === 0) break;
    query.set("cursor", answer.next_cursor);
  }
  return { items, next_cursor: null };
}
