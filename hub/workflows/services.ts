import type { SiteId } from "../../shared/ids.ts";
import type { OpenBmc } from "../bmc/port.ts";
import { holdsFence } from "../db/queries/workflows.ts";
import type { Db, InTx, Tx } from "../db/tx.ts";
import type { Log } from "../log.ts";
import type { MaasPort } from "../maas/port.ts";
import type { SecretStore } from "../secrets/port.ts";
import type { StageRun } from "./engine/stage.ts";

/** What first boot needs to know of this hub (lifecycle 9). */
export interface FirstBoot {
  readonly agentUrl: string;
  /** The CA in PEM, and base64url of the raw Ed25519 key that signs orders. Throws `SecretError` while the secret store has not given them. */
  readonly keys: () => { readonly caBundlePem: string; readonly taskSigningPublicKey: string };
  /** Where hosts of an architecture (Debian's name) fetch the agent; null where their image must bring it. */
  readonly agentPackage: (architecture: string) => Promise<{ readonly url: string; readonly sha256: string } | null>;
}

/** What the stages of workflows use; composed once, in the hub's main. */
export interface WorkflowServices {
  readonly db: Db;
  readonly inTx: InTx;
  readonly log: Log;
  readonly secrets: SecretStore;
  /** The site's client with its rate limit; reads the token afresh, so that a rotation needs no restart. */
  readonly maas: (siteId: SiteId) => Promise<MaasPort>;
  readonly bmc: OpenBmc;
  readonly firstBoot: FirstBoot;
}

/**
 * A transaction of a stage's own, for what must be written before something outside is done. It writes nothing when the lease was lost
 * meanwhile: another hub may have gone on.
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

/** A call that nobody heard the answer of may still be on its way in MAAS: until this long after, a machine that looks untouched proves nothing. */
export const UNHEARD_CALL_SECONDS = 30;

/** Calls to MAAS and to the secret store: three attempts (lifecycle 4.6) at what was refused; what is away is waited for. */
export const UPSTREAM_RETRY = { maxAttempts: 3, baseSeconds: 2, maxSeconds: 60 } as const;
/** A wait only looks: what it reads wrongly once must not end it. */
export const WAIT_RETRY = { maxAttempts: 20, baseSeconds: 2, maxSeconds: 60 } as const;
