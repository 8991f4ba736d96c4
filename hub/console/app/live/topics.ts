/**
 * A topic names what a part of a screen shows: a kind of objects such as `nodes`, or one object such as `nodes/<id>`. An event makes topics stale, and
 * a query whose topics are stale asks again. Events carry no data to the screen.
 */
export type Topic = string;

/** Every query is stale, for example after a time without events. */
export const EVERYTHING = "everything";

/** The topics that an event of a kind of subject makes stale, beside the topic of the subject itself. */
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

/** The topic of what a node does now, of a node's own topic. */
export const workOf = (node: Topic): Topic => `${node}/work`;

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

/** Returns the topics that an event makes stale. An event of an unknown kind makes everything stale, because a newer hub may have sent it. */
export function topicsOf(event: unknown): Topic[] {
  const subject = isObject(event) ? event["subject"] : undefined;
  if (typeof subject !== "string") return [EVERYTHING];
  const kinds = KINDS[subject.split("/")[0] ?? ""];
  if (kinds === undefined) return [EVERYTHING];
  const data = isObject(event) && isObject(event["data"]) ? event["data"] : {};
  const nodeId = data["node_id"];
  const node = typeof nodeId === "string" ? [`nodes/${nodeId}`] : [];
  // The progress of an operation changes only what a node shows about its work; other events tell of the node's status.
  if (isObject(event) && event["type"] === "operation.progressed") return [...kinds, subject, ...node.map(workOf)];
  return [...new Set([...kinds, subject, ...node])];
}

const KINDS_OF_TOPICS = new Set([...Object.keys(KINDS), ...Object.values(KINDS).flat()]);

/** Says whether events tell of every change of the topics. Without such events, an answer about the topics may be old although nothing made the answer stale. */
export const areTold = (about: readonly Topic[]): boolean =>
  about.every((topic) => KINDS_OF_TOPICS.has(topic.split("/")[0] ?? ""));

/** Says whether a query about some topics is stale after a change of others. */
export const isAbout = (about: readonly Topic[], changed: ReadonlySet<Topic>): boolean =>
  changed.has(EVERYTHING) || about.some((topic) => changed.has(topic));

/** Returns the topics of a query, which the query carries in its `meta`. A query without topics does not change by itself. */
export const topicsIn = (meta: Readonly<Record<string, unknown>> | undefined): readonly Topic[] =>
  Array.isArray(meta?.["about"]) ? meta["about"].filter((one) => typeof one === "string") : [];
