import type { Field } from "../description.ts";
import { Refused, UnknownName, UsageError } from "../errors.ts";
import type { Hub, Item } from "../hub.ts";

import type { Noun } from "../nouns/noun.ts";
import { operationNamed } from "../operation.ts";
import { type Flags, queryOf } from "../program/flags.ts";

import { shippedOperations } from "../table/shipped.ts";

/**
 * The query parameters that filter, sort and page the lists of one kind of object. If the API has several lists for one kind of object, `filtersOf`
 * returns only the parameters that all these lists have.
 */
export function filtersOf(noun: Noun): readonly Field[] {
  const [first = [], ...others] = noun.lists.map((id) => operationNamed(id, shippedOperations()).query);
  return first.filter(({ name }) => others.every((fields) => fields.some((field) => field.name === name)));
}

export interface Listed {
  readonly items: readonly Item[];
  /** The hub's answer to the request for a list, with all pages if the operator asked for them. */
  readonly answer: unknown;
  readonly more: boolean;
}

/** Reads the list of one kind of object, filtered by the flags of the command line. */
export async function readList(hub: Hub, noun: Noun, flags: Flags): Promise<Listed> {
  const query = queryOf(filtersOf(noun), flags);
  const parents = await parentsOf(hub, noun, flags);
  const [list] = noun.lists;
  const [parent] = parents;
  if (list !== undefined && noun.lists.length === 1 && parents.length === 1 && flags["all"] !== true) {
    const answer = await hub.one(list, { words: parent ?? {}, query });
    return { items: (answer["items"] ?? []) as Item[], answer, more: typeof answer["next_cursor"] === "string" };
  }
  const parts: (readonly Item[])[] = [];
  for (const id of noun.lists) for (const words of parents) parts.push(await hub.all(id, { words, query }));
  const items = parts.flat();
  return { items, answer: { items, next_cursor: null }, more: false };
}

/**
 * Returns the path parameters of each request that reads the list of one kind of object: one request, or one for each parent object, such as each
 * site.
 */
async function parentsOf(hub: Hub, noun: Noun, flags: Flags): Promise<readonly Readonly<Record<string, string>>[]> {
  const { parent } = noun;
  if (parent === undefined) return [{}];
  const named = flags[parent.flag];
  if (typeof named === "string") return [{ id: named }];
  if (parent.list === null)
    throw new UsageError(`The ${noun.plural} of which ${parent.flag}? Name it by --${parent.flag}.`);
  return (await hub.all(parent.list)).map((one) => ({ id: String(one["id"]) }));
}

/** Reads one object by its name or id. */
export async function readOne(hub: Hub, noun: Noun, name: string, flags: Flags = {}): Promise<Item> {
  if (noun.reads.length === 0 || noun.parent !== undefined) return findInList(hub, noun, name, flags);
  if (noun.plural === "operations") return readOperation(hub, name);
  const misses: unknown[] = [];
  for (const id of noun.reads) {
    const [field] = hub.operation(id).arguments;
    try {
      return await hub.one(id, { words: { [field?.name ?? "id"]: name } });
    } catch (error) {
      if (!(error instanceof UnknownName || (error instanceof Refused && error.httpStatus === 404))) throw error;
      misses.push(error);
    }
  }
  throw misses[0];
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Reads an operation by its id, or the newest operation of a host, which is the unfinished one if there is one. */
async function readOperation(hub: Hub, name: string): Promise<Item> {
  if (!UUID.test(name)) {
    const { items } = (await hub.one("listOperations", { query: { hostname: name, limit: "1" } })) as { items: Item[] };
    const [newest] = items;
    if (newest === undefined) throw new UnknownName(`There is no operation of a host ${name}.`);
    return readOperation(hub, String(newest["operation_id"]));
  }
  try {
    const onboarding = await hub.one("getOnboarding", { words: { id: name } });
    return { operation_id: name, kind: "onboarding", ...onboarding };
  } catch (error) {
    if (!(error instanceof Refused && error.httpStatus === 404)) throw error;
  }
  const decommission = await hub.one("getDecommission", { words: { id: name } });
  return { operation_id: name, kind: decommission["mode"], ...decommission };
}

/** Finds an object whose API has no operation that reads it, or whose name is unique only within its parent. */
async function findInList(hub: Hub, noun: Noun, name: string, flags: Flags): Promise<Item> {
  const { items } = await readList(hub, noun, { ...flags, all: true });
  const found = items.filter((item) => item[noun.id] === name || item[noun.label] === name);
  const [only, ...others] = found;
  if (only === undefined) throw new UnknownName(`There is no ${noun.singular} ${name}.`);
  if (others.length === 0) return only;
  const ids = found.map((item) => String(item[noun.id])).join(", ");
  const where = noun.parent === undefined ? "" : ` or name its ${noun.parent.flag} by --${noun.parent.flag}`;
  throw new UsageError(`${found.length} ${noun.plural} have the name ${name}. Give an id${where}: ${ids}`);
}
