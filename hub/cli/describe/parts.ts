import { Refused } from "../errors.ts";
import type { Hub, Item, Request } from "../hub.ts";

/**
 * Reads a list of the API for one section of what `muster describe` prints. `muster describe` leaves out a section if the caller has no right to read
 * the section's API list.
 */
export async function partOf(hub: Hub, list: string, request: Request): Promise<readonly Item[] | null> {
  try {
    const answer = await hub.one(list, request);
    return (answer["items"] ?? []) as Item[];
  } catch (error) {
    if (error instanceof Refused && error.httpStatus === 403) return null;
    throw error;
  }
}

/** What a person should do about operations that wait for a person. */
export const adviceOf = (operations: readonly Item[]): string[] =>
  operations.flatMap((one) => {
    if (typeof one["next_action"] !== "string") return [];
    const verb = typeof one["next_verb"] === "string" ? ` Then: ${one["next_verb"].replaceAll("_", "-")}.` : "";
    return [
      `${String(one["kind"] ?? "operation")} (${String(one["error_code"] ?? one["failure_class"] ?? one["status"])}): ${one["next_action"]}${verb}`,
    ];
  });
