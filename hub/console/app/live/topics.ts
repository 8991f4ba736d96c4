/**
 * A topic names the data that a part of a screen shows: a kind of objects such as `nodes`, or one object such as `nodes/<id>`. An event of the hub
 * makes topics stale, and the console sends a query again when its topics are stale. Events carry no data to the screen.
 */
export type Topic = string;

/** Makes every query of the console stale, for example after a time without the event stream. */
export const EVERYTHING = "everything";

/** For each kind of object that an event can be about: the topics that the event makes stale, besides the topic of the object itself. */
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

/** Returns the topic for a node's current work, from the topic of the node. */
export const workOf = (node: Topic): Topic => `${node}/work`;

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/**
 * Returns the topics that an event of the hub makes stale. An event about an unknown kind of object makes everything stale, because a newer hub may
 * have sent the event.
 */
export function topicsOf(event: unknown): Topic[] {
  const subject = isObject(event) ? event["subject"] : undefined;
  if (typeof subject !== "string") return [EVERYTHING];
  const kinds = KINDS[subject.split("/")[0] ?? ""];
  if (kinds === undefined) return [EVERYTHING];
  const data = isObject(event) && isObject(event["data"]) ? event["data"] : {};
  const nodeId = data["node_id"];
  const node = typeof nodeId === "string" ? [`nodes/${nodeId}`] : [];
  // An event `operation.progressed` changes only what the console shows of the node's work; other events report the node's status.
  if (isObject(event) && event["type"] === "operation.progressed") return [...kinds, subject, ...node.map(workOf)];
  return [...new Set([...kinds, subject, ...node])];
}

const KINDS_OF_TOPICS = new Set([...Object.keys(KINDS), ...Object.values(KINDS).flat()]);

/**
 * Says whether the hub sends an event for every change of the given topics. Where the hub sends no events about a topic, the console's data about the
 * topic may be old without being marked stale.
 */
export const areTold = (about: readonly Topic[]): boolean =>
  about.every((topic) => KINDS_OF_TOPICS.has(topic.split("/")[0] ?? ""));

/** Says whether a query with the topics `about` is stale after a change of the topics `changed`. */
export const isAbout = (about: readonly Topic[], changed: ReadonlySet<Topic>): boolean =>
  changed.has(EVERYTHING) || about.some((topic) => changed.has(topic));

/** Returns the topics of a query, which the query carries in its `meta`. No event makes a query without topics stale. */
export const topicsIn = (meta: Readonly<Record<string, unknown>> | undefined): readonly Topic[] =>
  Array.isArray(meta?.["about"]) ? meta["about"].filter((one) => typeof one === "string") : [];
