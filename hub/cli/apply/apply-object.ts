import { isDeepStrictEqual } from "node:util";
import { PartlyDone, Refused, UnknownName, UsageError } from "../errors.ts";
import type { Hub, Item, Request } from "../hub.ts";
import { cellOf } from "../output/cells.ts";
import type { Wanted } from "./read-documents.ts";

export interface Change {
  readonly what: "created" | "updated" | "unchanged";
  /** One line of text for each difference between the hub's object and the object in the operator's file. */
  readonly lines: readonly string[];
  /** Carries the change out. */
  readonly carryOut: (headers: Readonly<Record<string, string>>) => Promise<void>;
}

const NOTHING = async (): Promise<void> => undefined;
const siteOf = (wanted: Wanted): Readonly<Record<string, string>> => ({ id: wanted.site ?? "" });

/**
 * Compares an object of a file for `muster apply` with the hub's object, and returns the change that makes the hub's object equal. `muster apply`
 * does not change the fields of the hub's object that the file leaves out.
 */
export async function changeOf(hub: Hub, wanted: Wanted): Promise<Change> {
  switch (wanted.kind) {
    case "sku": {
      const words = { id: wanted.name ?? "" };
      return ofObject(
        hub,
        wanted,
        await orNull(hub.versioned("getSku", { words })),
        { id: "createSku" },
        { id: "updateSku", words },
      );
    }
    case "profile": {
      const words = { ...siteOf(wanted), profile_id: wanted.name ?? "" };
      const present = await orNull(hub.versioned("getMaasSiteProfile", { words }));
      return ofObject(
        hub,
        wanted,
        present,
        { id: "createMaasSiteProfile", words: siteOf(wanted) },
        { id: "updateMaasSiteProfile", words },
      );
    }
    case "policy": {
      const words = siteOf(wanted);
      const present = await hub.versioned("getMaasSitePolicy", { words });
      return ofObject(hub, wanted, present, null, { id: "updateMaasSitePolicy", words });
    }
    case "roce":
      return ofRows(hub, wanted);
  }
}

interface Present {
  readonly item: Item;
  readonly version: string;
}
type Call = { readonly id: string } & Pick<Request, "words">;

async function orNull(read: Promise<Present>): Promise<Present | null> {
  try {
    return await read;
  } catch (error) {
    // Only the object itself may be missing at the hub, because `apply` can create it; a site that does not exist is a mistake.
    if (error instanceof UnknownName && !error.message.startsWith("<id>")) return null;
    if (error instanceof Refused && error.httpStatus === 404) return null;
    throw error;
  }
}

/** The request for a change names the version of the object that `apply` compared, so that it never undoes a change that somebody made meanwhile. */
function ofObject(hub: Hub, wanted: Wanted, present: Present | null, create: Call | null, update: Call): Change {
  if (present === null) {
    if (create === null) throw new UsageError(`There is no ${wanted.label}.`);
    const lines = Object.entries(wanted.fields).map(([name, value]) => `  ${name}: ${cellOf(value)}`);
    return {
      what: "created",
      lines,
      carryOut: async (headers) => void (await hub.ask(create.id, { ...create, body: wanted.fields, headers })),
    };
  }
  const differing = Object.entries(wanted.fields).filter(
    ([name, value]) => !isDeepStrictEqual(present.item[name], value),
  );
  if (differing.length === 0) return { what: "unchanged", lines: [], carryOut: NOTHING };
  const body = Object.fromEntries(differing);
  return {
    what: "updated",
    lines: differing.map(([name, value]) => `  ${name}: ${cellOf(present.item[name])} -> ${cellOf(value)}`),
    carryOut: async (headers) =>
      void (await hub.ask(update.id, { ...update, body, headers: { ...headers, "if-match": present.version } })),
  };
}

async function ofRows(hub: Hub, wanted: Wanted): Promise<Change> {
  const rows = wanted.fields["rows"];
  if (!Array.isArray(rows)) throw new UsageError(`${wanted.label}: rows must be a list.`);
  const words = siteOf(wanted);
  const present = await hub.all("listRoceAssignments", { words });
  const key = (row: Item): string => `${row["hostname"]} ${row["interface"]}`;
  const before = new Map(present.map((row) => [key(row), row["ipv4_cidr"]]));
  const differing = (rows as Item[]).filter((row) => before.get(key(row)) !== row["ipv4_cidr"]);
  if (differing.length === 0) return { what: "unchanged", lines: [], carryOut: NOTHING };
  return {
    what: "updated",
    lines: differing.map((row) => `  ${key(row)}: ${cellOf(before.get(key(row)))} -> ${cellOf(row["ipv4_cidr"])}`),
    carryOut: async () => {
      const { failed, items } = await hub.one("upsertRoceAssignments", { words, body: { items: differing } });
      if (Number(failed) === 0) return;
      const faults = (items as Item[])
        .filter((one) => one["outcome"] === "failed")
        .map((one) => String(one["message"]));
      const Fault = faults.length < differing.length ? PartlyDone : Refused;
      throw new Fault(
        `${differing.length - faults.length} of ${differing.length} rows written, ${faults.length} refused: ${faults.join("; ")}`,
        422,
      );
    },
  };
}
