import type { Operation } from "./description.ts";
import { Away } from "./errors.ts";
import { fetchFrom, hubOf } from "./request.ts";

/** How long an unknown command waits for the API description of a hub; the wait is short, because the command may be mistyped. */
const DEADLINE_MS = 10_000;

/** Reads the operations from a hub's own API description; returns an empty list if the hub does not answer. */
export async function operationsOfHub(values: Readonly<Record<string, unknown>>): Promise<readonly Operation[]> {
  try {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    const { url } = await hubOf(values, process.env);
    const response = await fetchFrom(url.value, "/api/v1/openapi.json", { signal });
    if (!response.ok) return [];
    const [{ operationsOf }, document] = await Promise.all([import("./description.ts"), response.json()]);
    return operationsOf(document);
  } catch (error) {
    if (error instanceof Away || (error instanceof Error && error.name === "TimeoutError")) return [];
    throw error;
  }
}
