import { ifUnchanged, read } from "./client.ts";

/** An object of the API with the header that lets a change fail if somebody else has changed the object meanwhile. */
export interface Versioned<Data> {
  readonly data: Data;
  readonly header: { readonly "If-Match": string };
}

/** Returns an object with its version, for a form in which a person decides by the values that the form shows. */
export async function readVersioned<Data>(
  asked: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Versioned<NonNullable<Data>>> {
  const answer = await asked;
  return { data: await read(Promise.resolve(answer)), header: ifUnchanged(answer) };
}

/**
 * A person who fills in a form or confirms a plan decides by the values that are shown, so a form keeps the hub's first answer: neither an event nor
 * a return to the tab reads it again. Each time a form opens, the console asks the hub for new values.
 */
export const FOR_A_FORM = { staleTime: "static", gcTime: 0 } as const;
