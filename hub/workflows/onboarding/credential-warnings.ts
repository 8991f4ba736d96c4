import type { CREDENTIAL_WARNINGS } from "../../../shared/events.ts";
import type { Log } from "../../../shared/log.ts";
import {
  type CredentialRecord,
  listCredentials,
  NOT_ADMINISTRATOR,
  noteWarning,
} from "../../db/queries/credential-uses.ts";
import { recordDomainEvent } from "../../db/queries/domain-events.ts";
import type { InTx } from "../../db/tx.ts";
import { periodically } from "../../timing/periodically.ts";

/** After `UNUSED_DAYS` without use, the hub warns about a BMC login for a single host (lifecycle 12, question 4). */
const UNUSED_DAYS = 30;
const DAY_MS = 86_400_000;
const EVERY_MS = 3_600_000;

export interface CredentialWarning {
  readonly reason: (typeof CREDENTIAL_WARNINGS)[number];
  readonly since: Date;
  readonly message: string;
}

/**
 * The kind of warning about a site's secret; null if the secret needs no warning. A secret is `failing` while its last recorded use failed. The
 * warning `unused` exists only for a BMC login for a single host, because a site needs its token and its default login even without onboardings.
 */
export function warningOf(secret: CredentialRecord): CredentialWarning | null {
  const { lastFailedAt, lastWorkedAt, now } = secret;
  if (lastFailedAt !== null && (lastWorkedAt === null || lastFailedAt > lastWorkedAt))
    return { reason: "failing", since: lastFailedAt, message: failing(secret) };
  if (secret.kind !== "power_override") return null;
  const idleSince = latest(secret.usableSince, secret.lastUsedAt);
  if (now.getTime() - idleSince.getTime() < UNUSED_DAYS * DAY_MS) return null;
  const message = `No onboarding has used the BMC login for ${secret.selector} for ${UNUSED_DAYS} days. Delete the override if the site's login works for the host.`;
  return { reason: "unused", since: idleSince, message };
}

const latest = (one: Date, other: Date | null): Date => (other !== null && other > one ? other : one);

function failing({ kind, selector, lastFailureCode, lastFailureMessage }: CredentialRecord): string {
  if (kind === "maas_token" && lastFailureCode === NOT_ADMINISTRATOR)
    return "The user of the site's MAAS token is no longer an administrator. Muster refuses onboardings, and cannot tell whether a missing machine was deleted. Make the user an administrator in MAAS again, or write an administrator's token.";
  if (kind === "maas_token")
    return `Muster cannot watch the site's MAAS with the site's token (${lastFailureCode}). Probe the site, and write its credentials again.`;
  const login = kind === "power" ? "the site's BMC login" : `the BMC login for ${selector}`;
  return `The last onboarding with ${login} failed: ${lastFailureMessage} Check the BMC; if the login is wrong, write it again.`;
}

/**
 * Records one event for each secret that has become unused or failing, even if several hubs check the secrets. If a secret has a new fault after an
 * operator has corrected an earlier one, the hub records a new event.
 */
export function warnOfCredentials(inTx: InTx): Promise<number> {
  return inTx(async (tx) => {
    let warned = 0;
    for (const secret of await listCredentials(tx)) {
      const warning = warningOf(secret);
      const { siteId, path } = secret;
      if ((warning?.reason ?? null) === secret.warnedOf) continue;
      if (!(await noteWarning(tx, { siteId, path }, warning?.reason ?? null)) || warning === null) continue;
      await recordDomainEvent(tx, {
        type: "site.credential.warning",
        subject: `maas-sites/${siteId}`,
        data: {
          site_id: siteId,
          credential: secret.kind,
          override_id: secret.overrideId,
          reason: warning.reason,
          message: warning.message,
        },
      });
      warned += 1;
    }
    return warned;
  });
}

/** Checks all secrets of the sites at the hub's start and then each hour, and warns operators. */
export const startCredentialWarnings = ({ inTx, log }: { readonly inTx: InTx; readonly log: Log }) =>
  periodically({
    everyMs: EVERY_MS,
    turn: async () => {
      const warned = await warnOfCredentials(inTx);
      if (warned > 0) log.warn("credentials are unused or failing", { count: warned });
    },
    log,
    failed: "credentials could not be looked over",
  });
