import type { Log } from "../../../shared/log.ts";
import { type ClaimedProbe, claimProbes, hasProbes } from "../../db/queries/node-probes.ts";
import type { InTx } from "../../db/tx.ts";
import { probeDelaySeconds, probesMade } from "../../metrics/counted/probes.ts";
import { periodically } from "../../timing/periodically.ts";
import { WakeSignal } from "../../timing/wake-signal.ts";
import { wheneverDue } from "../../timing/whenever-due.ts";
import { planProbes } from "./plan-probes.ts";
import { HUB_NETWORK, type ProbeNetwork } from "./probe-address.ts";
import { probeHost } from "./probe-host.ts";
import { type MadeProbe, recordResults } from "./record-results.ts";

/** The largest number of probes of one hub that run or whose results wait to be written, which also limits the hub's sockets to hosts. */
const MOST_AT_ONCE = 128;
const PLAN_EVERY_MS = 10_000;
const CLAIM_EVERY_MS = 1_000;
const WRITE_EVERY_MS = 5_000;
/** The largest number of probe results that one transaction writes, while it locks the rows of their nodes. */
const WRITTEN_AT_ONCE = 50;

export interface ProberOptions {
  readonly inTx: InTx;
  readonly log: Log;
  /** How the hub finds hosts' addresses and which of them it may probe; the default is `HUB_NETWORK`, and tests replace it. */
  readonly network?: ProbeNetwork;
  readonly mostAtOnce?: number;
}

/**
 * Probes the hosts of the nodes whose profiles list probes. Any number of hubs share the work of probing: each hub claims probes that are due and
 * that no other hub has claimed. No database transaction is open while a probe runs. The hub writes results of probes in batches: each batch has the
 * results that arrived while the batch before was committed.
 */
export function startProber(options: ProberOptions): { close(): Promise<void> } {
  const { inTx, log, network = HUB_NETWORK, mostAtOnce = MOST_AT_ONCE } = options;
  const [due, done] = [new WakeSignal(), new WakeSignal()];
  const closing = new AbortController();
  const atWork = new Set<Promise<void>>();
  const results: MadeProbe[] = [];
  const untried = { count: 0, why: "" };
  let isAny = false;
  const probe = async (claimed: ClaimedProbe): Promise<void> => {
    probeDelaySeconds.observe({}, claimed.lateSeconds);
    const result = await probeHost(claimed, network, closing.signal);
    probesMade.add({ kind: claimed.probe.kind, outcome: result.kind });
    if (result.kind !== "not_tried") results.push({ claimed, result });
    else {
      untried.count += 1;
      untried.why = result.saw;
    }
    done.raise();
  };
  const claim = async (): Promise<void> => {
    const free = mostAtOnce - atWork.size - results.length;
    if (!isAny || free <= 0 || closing.signal.aborted) return;
    const claimed = await inTx((tx) => claimProbes(tx, free));
    for (const one of claimed) {
      const work = probe(one)
        .catch((error: unknown) => log.warn("a probe failed", { node_id: one.nodeId, error }))
        .finally(() => {
          atWork.delete(work);
          if (claimed.length === free) due.raise();
        });
      atWork.add(work);
    }
  };
  const write = async (): Promise<void> => {
    while (results.length > 0) {
      const made = results.splice(0, WRITTEN_AT_ONCE);
      await recordResults({ inTx, log }, made);
    }
  };
  const plan = async (): Promise<void> => {
    // A fault of the hub's network concerns the probes of all hosts, so one log line counts all probes that the hub could not make.
    if (untried.count > 0) log.warn("the hub could not probe hosts", { probes: untried.count, last: untried.why });
    untried.count = 0;
    const changed = await planProbes(inTx);
    isAny = await inTx(hasProbes);
    if (changed > 0) due.raise();
  };
  const planner = periodically({ everyMs: PLAN_EVERY_MS, turn: plan, log, failed: "probes could not be planned" });
  const claimer = wheneverDue({ due, everyMs: CLAIM_EVERY_MS, turn: claim, log, failed: "no probe could be claimed" });
  const failed = "results of probes could not be written; the next probes bring new ones";
  const writer = wheneverDue({ due: done, everyMs: WRITE_EVERY_MS, turn: write, log, failed });
  return {
    close: async () => {
      closing.abort();
      await planner.close();
      await claimer.close();
      await Promise.all(atWork);
      await writer.close();
      await write().catch((error: unknown) => log.warn(failed, { error }));
    },
  };
}
