import { readOpenSession } from "../../db/queries/agent-sessions.ts";
import { extendExpiredToken, hasExpiredToken } from "../../db/queries/enrollment-tokens.ts";
import { waitKey } from "../../db/queries/workflow-wakes.ts";
import type { AgentSession } from "../../db/schema/index.ts";
import type { Tx } from "../../db/tx.ts";
import type { Wait } from "../engine/stage.ts";
import { absenceHint } from "./agent-absence.ts";
import { type ProvisionContext, provisioningOf } from "./context.ts";
import type { ProvisionState } from "./provision-state.ts";

/** The hub extends the life of an expired enrollment token at most `MOST_TOKEN_REFRESHES` times (lifecycle 4.6). */
const MOST_TOKEN_REFRESHES = 2;
const LOOK_AGAIN_SECONDS = 15;

/** `agentSession` ignores the agent's sessions of earlier provisioning attempts. */
export function agentSession(context: ProvisionContext): Promise<AgentSession | null> {
  const { nodeId, generation } = provisioningOf(context);
  return readOpenSession(context.services.db, nodeId, generation);
}

/**
 * The host got its enrollment token at its first boot and cannot get a new token, so the hub extends the expired token. The hub does not extend an
 * enrollment token that is revoked or used.
 */
export async function waitForAgent(context: ProvisionContext): Promise<Wait<ProvisionState>> {
  const { nodeId, generation } = provisioningOf(context);
  const hint = await absenceHint(context);
  const reason = `The agent to enroll and connect${hint === null ? "" : `; ${hint}`}`;
  const wait: Wait<ProvisionState> = { kind: "wait", reason, seconds: LOOK_AGAIN_SECONDS, on: waitKey.node(nodeId) };
  const refreshes = context.state.token_refreshes ?? 0;
  if (refreshes >= MOST_TOKEN_REFRESHES) return wait;
  if (!(await hasExpiredToken(context.services.db, nodeId, generation))) return wait;
  const ttl = context.profile.enrollmentTokenTtlSeconds;
  return {
    ...wait,
    reason: `${reason}; its token was extended (${refreshes + 1} of ${MOST_TOKEN_REFRESHES})`,
    patch: { token_refreshes: refreshes + 1 },
    commit: async (tx: Tx) => {
      await extendExpiredToken(tx, nodeId, generation, ttl);
    },
  };
}
