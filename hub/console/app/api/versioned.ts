import { ifUnchanged, read } from "./client.ts";

/** An object of the API with the header that lets a change fail if somebody else has changed the object meanwhile. */
export interface Versioned<Data> {
  readonly data: Data;
  readonly header: { readonly "If-Match": string };
}

/** Returns the answer with its version, for a form whose person decides by what the form shows. */
export async function readVersioned<Data>(
  asked: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<Versioned<NonNullable<Data>>> {
  const answer = await asked;
  return { data: await read(Promise.resolve(answer)), header: ifUnchanged(answer) };
}

/**
 * Whoever fills in a form or confirms a plan decides by what is shown, so the first answer stays: no event and no return to the tab asks again. Each
 * opening does.
 */
export const FOR_A_FORM = { staleTime: "static", gcTime: 0 } as const;
