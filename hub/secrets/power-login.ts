import type { SecretData } from "./port.ts";

/** Returns a BMC's login as the secret store holds it. A stored BMC login without a driver uses IPMI. */
export const powerLogin = ({
  user,
  pass,
  driver,
}: {
  readonly user: string;
  readonly pass: string;
  readonly driver?: string | undefined;
}): SecretData => ({ user, pass, ...(driver === undefined ? {} : { driver }) });
