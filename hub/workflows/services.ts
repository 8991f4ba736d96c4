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

export interface FirstBoot {
  readonly agentUrl: string;
  /**
   * The hub's CA certificate in PEM, and the raw Ed25519 public key for signed tasks in base64url. `keys` throws `SecretError` until the secret store
   * has returned the hub's CA and task-signing key.
   */
  readonly keys: () => { readonly caBundlePem: string; readonly taskSigningPublicKey: string };
  /**
   * Returns the download of the agent's package for an architecture with its Debian name, for example `amd64`. Without an agent package for the
   * architecture, `agentPackage` returns null; the host's image must then already contain the agent.
   */
  readonly agentPackage: (architecture: string) => Promise<{ readonly url: string; readonly sha256: string } | null>;
}

export interface WorkflowServices {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
  readonly secrets: SecretStore;
  /** After a rotation of the site's token, `maas` returns a client with the new token, without a restart of the hub. */
  readonly maas: (siteId: SiteId) => Promise<MaasPort>;
  readonly bmc: OpenBmc;
  readonly firstBoot: FirstBoot;
  /** `countersign` throws `SecretError` until the secret store has returned the hub's order key. */
  readonly countersign: Countersign;
  /**
   * Compares a host's answers about GPU memory with the answers that the hub computes. `checkAnswers` rejects its promise while too many checks of
   * answers about GPU memory already wait.
   */
  readonly checkAnswers: (check: AnswersToCheck) => Promise<CheckedAnswers[]>;
}

/**
 * Opens a transaction for writes that a stage must commit before the stage acts outside the hub. If the run of the stage has lost its lease,
 * `inFencedTx` writes nothing, because another hub may already run the workflow.
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
 * A MAAS call whose answer was lost may still take effect within `UNHEARD_CALL_SECONDS`. Until `UNHEARD_CALL_SECONDS` have passed, an unchanged
 * machine does not prove that an unanswered MAAS call had no effect.
 */
export const UNHEARD_CALL_SECONDS = 30;

/** A refused call to MAAS or to the secret store gets three attempts (lifecycle 4.6); an unavailable service uses up no attempt. */
export const UPSTREAM_RETRY = { maxAttempts: 3, baseSeconds: 2, maxSeconds: 60 } as const;
/** A waiting stage only reads, so a few failed reads must not end its wait. */
export const WAIT_RETRY = { maxAttempts: 20, baseSeconds: 2, maxSeconds: 60 } as const;
