import { z } from "zod";
import { ApiError } from "../../../shared/api/errors.ts";
import { page } from "../../../shared/api/onboardings.ts";
import {
  ReceivedSignal,
  SIGNAL_ID_LENGTH,
  Signal,
  SignalBatch,
  SignalBatchCreate,
  type SignalResult,
  SignalsTaken,
  STORED_OUTCOMES,
} from "../../../shared/api/signals.ts";
import { NodeId } from "../../../shared/ids.ts";
import { listReceived } from "../../db/queries/received-signals.ts";
import { isoOrNull } from "../../db/queries/workflow-views.ts";
import type { ReceivedSignalRow } from "../../db/schema/index.ts";
import { takeSignals } from "../../node/take-signals.ts";
import { pageOf, pageQuery, readBefore } from "../page.ts";
import { isStorable, parse } from "../problem.ts";
import { readRoute, writeRoute } from "../route.ts";
import { CLOUD_EVENT, CLOUD_EVENT_BATCH, toPlainBody } from "../signal-bodies.ts";

const path = "/api/v1/readiness/signals";
const tag = "readiness";

type Read = { readonly signal: Signal } | { readonly fault: SignalResult };

function readItem(item: unknown): Read {
  try {
    return { signal: parse(Signal, item, "body") };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const id = typeof item === "object" && item !== null && "signal_id" in item ? item.signal_id : null;
    const wrong = (error.errors ?? []).slice(0, 5).map(({ pointer, message }) => `${pointer} ${message}`);
    const detail = `It is no signal: ${wrong.join("; ")}`.slice(0, 500);
    const short = typeof id === "string" ? id.slice(0, SIGNAL_ID_LENGTH) : "";
    const signal_id = short !== "" && isStorable(short) ? short : null;
    return { fault: { signal_id, outcome: "invalid", node_id: null, node_generation: null, detail: storable(detail) } };
  }
}

/** The names of wrong fields come from the sender, so they may hold characters that the hub cannot store. */
const storable = (text: string): string => text.toWellFormed().replaceAll("\u0000", "\ufffd");

/** The hub reads the signals of a batch one by one, so that a fault of one signal, also in its texts, does not make the whole body invalid. */
const Batch = SignalBatch.extend({ signals: SignalBatch.shape.signals.transform((items) => items.map(readItem)) });

/** The hub checks a body either as one signal or as a batch of signals, because an error of the union of both schemas could not name the wrong field. */
const SignalsBody = z.unknown().transform((value): readonly Read[] => {
  const isBatch = typeof value === "object" && value !== null && "signals" in value;
  return isBatch ? parse(Batch, value, "body").signals : [{ signal: parse(Signal, value, "body") }];
});

const REFUSED: readonly SignalResult["outcome"][] = ["invalid", "ambiguous", "refused", "reused"];

const postSignals = writeRoute({
  operationId: "postSignals",
  method: "POST",
  path,
  tag,
  summary:
    "Report conditions of nodes by one signal or up to 100, as plain JSON or as CloudEvents, and tell what became of each",
  permission: "write",
  right: "report_signals",
  place: "list",
  query: z.strictObject({
    sender: z
      .uuid()
      .describe("The id of the signal sender that has signed the request; without it, send a token")
      .optional(),
  }),
  body: SignalsBody,
  media: { types: [CLOUD_EVENT, CLOUD_EVENT_BATCH], shown: z.union([Signal, SignalBatchCreate]), read: toPlainBody },
  status: 202,
  response: SignalsTaken,
  write: async ({ body: read, actor }, tx) => {
    const signals = read.flatMap((one) => ("signal" in one ? [one.signal] : []));
    const taken = await takeSignals(tx, { name: actor.name, sites: actor.sites }, signals);
    const results = read.map((one) => ("fault" in one ? one.fault : (taken.shift() as SignalResult)));
    const refused = results.filter(({ outcome }) => REFUSED.includes(outcome)).length;
    const counts = Object.fromEntries(
      [...Map.groupBy(results, ({ outcome }) => outcome)].map(([outcome, all]) => [outcome, all.length]),
    );
    return {
      body: { accepted: results.length - refused, refused, results },
      audit: {
        target: "readiness-signals",
        details: { outcomes: counts, signal_ids: results.slice(0, 10).map(({ signal_id }) => signal_id) },
      },
    };
  },
});

const toReceived = (row: ReceivedSignalRow): z.input<typeof ReceivedSignal> => ({
  id: row.id,
  sender: row.sender,
  signal_id: row.signalId,
  outcome: row.outcome,
  detail: row.detail,
  node: row.named,
  node_id: row.nodeId,
  generation: row.generation,
  boot_id: row.bootId,
  conditions: row.conditions,
  received_at: row.receivedAt.toISOString(),
  decided_at: isoOrNull(row.decidedAt),
  parked_until: isoOrNull(row.parkedUntil),
});

const listSignals = readRoute({
  operationId: "listSignals",
  method: "GET",
  path,
  tag,
  summary: "List received signals with what became of each, the newest first; also those that were not applied",
  permission: "read",
  right: "read_nodes",
  place: "list",
  query: z.strictObject({
    ...pageQuery,
    outcome: z.enum(STORED_OUTCOMES).optional(),
    node_id: NodeId.optional(),
    sender: z.string().min(1).max(128).optional(),
  }),
  status: 200,
  response: page(ReceivedSignal),
  read: async ({ query, actor, deps }) => {
    const { outcome, node_id: nodeId, sender } = query;
    const filter = { outcome, nodeId, sender, reach: actor, caller: actor.name };
    const before = readBefore(query.cursor);
    const rows = await listReceived(deps.db, filter, { before, limit: query.limit + 1 });
    return pageOf(
      rows,
      query.limit,
      ({ signal, at }) => [at, signal.id],
      ({ signal }) => toReceived(signal),
    );
  },
});

export const signalRoutes = [postSignals, listSignals];
