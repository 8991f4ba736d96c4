/** The steps of the suite `control-plane`. An access key of the suite is a token of Muster, and the name of the token is the name of its user. */
import { Token, TokenSecret } from "../../../../shared/api/tokens.ts";
import { HubApi, HubProblem } from "../../../support/hub-api.ts";
import { ADMIN, absent, argument, type Step } from "../step.ts";

const KEY = { "access-key-id": "{{steps.create_access_key.access_key_id}}" };
const SECRET = "secret-access-key";
const WITH_SECRET = { ...KEY, [SECRET]: `{{steps.create_access_key.secret_access_key}}` };

const checkApi: Step = {
  name: "check_api",
  phase: "setup",
  seconds: 60,
  args: {},
  run: async (hub) => {
    const ready = await fetch(new URL("/readyz", hub.url));
    const sites = await hub.sites();
    const tests = { readiness: { passed: ready.ok }, authenticated_read: { passed: sites.length > 0 } };
    return { success: ready.ok && sites.length > 0, account_id: sites[0]?.name ?? null, tests };
  },
};

const createKey: Step = {
  name: "create_access_key",
  phase: "setup",
  seconds: 60,
  args: {},
  run: async (hub) => {
    const wanted = { name: `validation-${Date.now()}`, role: "viewer", expires_in_days: 1 };
    const { id, name, token } = await hub.call(TokenSecret, "POST", `${ADMIN}/tokens`, wanted);
    return { success: true, access_key_id: id, username: name, secret_access_key: token };
  },
};

/** Reads the fleet with the new token; null if the hub refuses the token. */
async function refusalOf(url: string, token: string): Promise<HubProblem | null> {
  try {
    await new HubApi(url, token).nodes();
    return null;
  } catch (error) {
    if (error instanceof HubProblem && error.problem.status === 401) return error;
    throw error;
  }
}

const testKey: Step = {
  name: "test_access_key",
  phase: "test",
  seconds: 60,
  args: WITH_SECRET,
  secret: [SECRET],
  run: async (hub, args) => {
    const refusal = await refusalOf(hub.url, argument(args, SECRET));
    const authenticated = refusal === null;
    return { success: authenticated, authenticated, identity_id: argument(args, "access-key-id") };
  },
};

const disableKey: Step = {
  name: "disable_access_key",
  phase: "test",
  seconds: 60,
  args: KEY,
  run: async (hub, args) => {
    const path = `${ADMIN}/tokens/${argument(args, "access-key-id")}`;
    await hub.call(Token, "POST", `${path}/revoke`, { reason: "The suite disables its key" });
    const { status } = await hub.call(Token, "GET", path);
    return { success: true, status: status === "revoked" ? "Inactive" : status };
  },
};

const keyRejected: Step = {
  name: "verify_key_rejected",
  phase: "test",
  seconds: 60,
  args: WITH_SECRET,
  secret: [SECRET],
  run: async (hub, args) => {
    const refusal = await refusalOf(hub.url, argument(args, SECRET));
    return { success: true, rejected: refusal !== null, error_code: refusal?.problem.code ?? null };
  },
};

/**
 * The suite's steps about tenants and about the deletion of a key are left out, because the suite refuses their results without a tenant or a deletion: a
 * tenant of Muster is a name on its allocations, and Muster keeps a revoked token for the audit.
 */
export const CONTROL_PLANE_STEPS: readonly Step[] = [
  checkApi,
  createKey,
  testKey,
  disableKey,
  keyRejected,
  absent("s3_object_lifecycle", "test", "Muster stores no objects"),
];
