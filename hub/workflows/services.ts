import type { SiteId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { OpenBmc } from "../bmc/port.ts";
import { holdsFence } from "../db/queries/workflows.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import type { AnswersToCheck, CheckedAnswers } from "../gpu-memory/expected-answers.ts";
import type { MaasPort } from "../maas/port.ts";
import type { Countersign } from "../node/store-record.ts";
import type { SecretStore } from "../secrets/port.ts";
import type { StageRun } from "./engine/stage.ts";

/** The facts about this hub that a host's first boot needs (lifecycle 9). */
export interface FirstBoot {
  readonly agentUrl: string;
  /**
   * The hub's CA certificate in PEM, and the raw Ed25519 public key for signed tasks in base64url. Throws `SecretError` until the secret store has
   * returned the hub's CA and key.
   */
  readonly keys: () => { readonly caBundlePem: string; readonly taskSigningPublicKey: string };
  /**
   * Returns the download of the agent's package for an architecture, which has its name in Debian, for example `amd64`. `agentPackage` returns null
   * if the hub has no agent package for the architecture; the host's image must then already contain the agent.
   */
  readonly agentPackage: (architecture: string) => Promise<{ readonly url: string; readonly sha256: string } | null>;
}

/** The services that workflow stages use. The hub's main module creates the services of workflow stages once. */
export interface WorkflowServices {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
  readonly secrets: SecretStore;
  /** The site's MAAS client with its rate limit. A rotation of the site's token needs no restart of the hub. */
  readonly maas: (siteId: SiteId) => Promise<MaasPort>;
  readonly bmc: OpenBmc;
  readonly firstBoot: FirstBoot;
  /** Signs a sanitization record with the hub's order key. Throws `SecretError` until the secret store has returned the order key. */
  readonly countersign: Countersign;
  /**
   * Compares a host's answers about GPU memory with the answers that the hub computes. `checkAnswers` rejects its promise while too many checks of
   * answers about GPU memory wait.
   */
  readonly checkAnswers: (check: AnswersToCheck) => Promise<CheckedAnswers[]>;
}

/**
 * A stage's own transaction, for writes that must be committed before the stage acts outside the hub. If the run has lost its lease, the stage's
 * transaction writes nothing, because another hub may already run the workflow.
 */
export async function inFencedTx<T>(
  context: Pick<StageRun<unknown, unknown>, "workflowId" | "fence"> & {
    readonly services: Pick<WorkflowServices, "inTx">;
  },
  fn: (tx: Tx) => Promise<T>,
): Promise<T> {
  return context.services.inTx(async (tx) => {
    if (!(await holdsFence(tx, context.workflowId, context.fence))) throw new Error("the lease of this run was lost");
    return fn(tx);
  });
}

/**
 * A MAAS call whose answer was lost may still take effect within this many seconds. Within `UNHEARD_CALL_SECONDS` of a call without an answer, an
 * unchanged machine does not prove that the call had no effect.
 */
export const UNHEARD_CALL_SECONDS = 30;

/**
 * Retry policy for calls to MAAS and to the secret store. A refused call gets three attempts (lifecycle 4.6); an unavailable service uses up no
 * attempt.
 */
export const UPSTREAM_RETRY = { maxAttempts: 3, baseSeconds: 2, maxSeconds: 60 } as const;
/** Retry policy for stages that wait. A stage that waits only reads, so a few wrong answers must not end the wait. */
export const WAIT_RETRY = { maxAttempts: 20, baseSeconds: 2, maxSeconds: 60 } as const;
