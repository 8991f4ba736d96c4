/**
 * A topic names the data that a part of a screen shows: a kind of objects such as `nodes`, or one object such as `nodes/<id>`. An event of the hub
 * marks topics, such as `nodes`, as stale, and the console sends a query again when one of the query's topics is stale. Events carry no data to the
 * screen.
 */
export type Topic = string;

/** Makes every query of the console stale, for example after a time without the event stream. */
export const EVERYTHING = "everything";

/** For each kind of object that an event can be about: which cached data becomes stale, besides the data of the object itself. */
const KINDS: Readonly<Record<string, readonly Topic[]>> = {
  nodes: ["nodes"],
  onboardings: ["operations"],
  decommissions: ["operations"],
  allocations: ["allocations", "nodes"],
  repairs: ["repairs", "nodes"],
  "onboarding-batches": ["batches"],
  "decommission-batches": ["batches"],
  "maas-sites": ["sites"],
  tokens: ["tokens"],
  approvals: ["approvals"],
  webhooks: ["webhooks"],
  authority: ["authority"],
  "signal-senders": ["signal-senders"],
};

/** Returns the name of the cached data about a node's current work, `nodes/<id>/work`, from the node's name `nodes/<id>`. */
export const workOf = (node: Topic): Topic => `${node}/work`;

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/**
 * Returns the topics (names of cached data, such as `nodes`) that an event of the hub makes stale. An event about an unknown kind of object makes
 * everything stale, because a newer hub may have sent the event.
 */
export function topicsOf(event: unknown): Topic[] {
  const subject = isObject(event) ? event["subject"] : undefined;
  if (typeof subject !== "string") return [EVERYTHING];
  const kinds = KINDS[subject.split("/")[0] ?? ""];
  if (kinds === undefined) return [EVERYTHING];
  const data = isObject(event) && isObject(event["data"]) ? event["data"] : {};
  const nodeId = data["node_id"];
  const node = typeof nodeId === "string" ? [`nodes/${nodeId}`] : [];
  // An event `operation.progressed` makes only the data about the node's current work stale; every other event makes all data about the node stale.
  if (isObject(event) && event["type"] === "operation.progressed") return [...kinds, subject, ...node.map(workOf)];
  return [...new Set([...kinds, subject, ...node])];
}

const KINDS_OF_TOPICS = new Set([...Object.keys(KINDS), ...Object.values(KINDS).flat()]);

/**
 * Says whether the hub sends an event for every change of the data that the given topics name. If the hub sends no events about some data, the
 * console may show old data without knowing that it is old.
 */
export const areTold = (about: readonly Topic[]): boolean =>
  about.every((topic) => KINDS_OF_TOPICS.has(topic.split("/")[0] ?? ""));

/** Says whether a cached query about the data `about` is stale after changes of the data `changed`. */
export const isAbout = (about: readonly Topic[], changed: ReadonlySet<Topic>): boolean =>
  changed.has(EVERYTHING) || about.some((topic) => changed.has(topic));

/**
 * Returns the topics of a cached query, which are the names of its data, such as `nodes`, from the query's `meta`. A cached query that names no data
 * in its `meta` becomes stale only when all data becomes stale.
 */
export const topicsIn = (meta: Readonly<Record<string, unknown>> | undefined): readonly Topic[] =>
  Array.isArray(meta?.["about"]) ? meta["about"].filter((one) => typeof one === "string") : [];
