import { failure } from "../../../shared/failures.ts";
import { Secret } from "../../../shared/secret.ts";
import { BMC_DRIVERS, type BmcDriver } from "../../bmc/port.ts";
import type { PowerLogin } from "../../maas/port.ts";
import type { SecretStore } from "../../secrets/port.ts";
import { StageFailure } from "../stage-failure.ts";
import type { OnboardContext } from "./context.ts";

/** The hub reads a BMC's user and password from the secret store at each use, and does not keep the login (lifecycle 3.2). */
export async function readPowerLogin(
  secrets: SecretStore,
  path: string,
): Promise<{ driver: BmcDriver; user: string; pass: Secret }> {
  const { user, pass, driver: named } = await secrets.read(path);
  const driver = named === undefined ? "ipmi" : BMC_DRIVERS.find((one) => one === named);
  if (driver === undefined) {
    const message = `The secret ${path} names a BMC driver that is not one of ${BMC_DRIVERS.join(", ")}. Write the credentials again, then resume.`;
    throw new StageFailure(failure("site_capability_missing", "secret_corrupt", message, { secret_path: path }));
  }
  if (user !== undefined && user !== "" && pass !== undefined && pass !== "")
    return { driver, user, pass: new Secret(pass) };
  const message = `The secret ${path} does not hold a BMC user and password. Write the credentials again, then resume.`;
  throw new StageFailure(failure("site_capability_missing", "secret_missing", message, { secret_path: path }));
}

export async function powerOf({ state, services, onboarding }: OnboardContext): Promise<PowerLogin> {
  const path = state.power_credentials_path;
  if (path === null || path === undefined) {
    const message = "The onboarding's record names no BMC login. Rerun from the top.";
    throw new StageFailure(failure("state_ambiguity", "node_state_conflict", message));
  }
  return { address: onboarding.ipmiIp, ...(await readPowerLogin(services.secrets, path)) };
}
