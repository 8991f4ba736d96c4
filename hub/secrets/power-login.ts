import type { SecretData } from "./port.ts";

/** A BMC's login as it is stored. A login without a driver uses IPMI. */
export const powerLogin = ({
  user,
  pass,
  driver,
}: {
  readonly user: string;
  readonly pass: string;
  readonly driver?: string | undefined;
}): SecretData => ({ user, pass, ...(driver === undefined ? {} : { driver }) });
