import { z } from "zod";
import { Secret } from "../../shared/secret.ts";
import { type SecretData, SecretError, type SecretStore } from "../secrets/port.ts";

/**
 * The present and the previous secret of a webhook, as the secret store holds them. `previous_until` is the time at which the previous secret ends,
 * in ISO 8601.
 */
const Kept = z.object({ secret: z.string(), previous: z.string().optional(), previous_until: z.string().optional() });

export function signingKeys(data: SecretData, now: Date): Secret[] {
  const { secret, previous, previous_until: until } = Kept.parse(data);
  return previous !== undefined && until !== undefined && new Date(until) > now
    ? [new Secret(secret), new Secret(previous)]
    : [new Secret(secret)];
}

/**
 * Returns the value that the secret store holds after a webhook has got a new secret. If an operator sends the present secret as the new secret, the
 * present secret does not become the previous one, so a repeated request changes nothing. If a repeated request asks for a shorter overlap of the two
 * secrets, the previous secret ends earlier.
 */
export function rotated(data: SecretData, secret: Secret, overlapSeconds: number, now: Date): SecretData {
  const kept = Kept.parse(data);
  const asked = new Date(now.getTime() + overlapSeconds * 1000).toISOString();
  if (kept.secret !== secret.reveal()) return { secret: secret.reveal(), previous: kept.secret, previous_until: asked };
  if (kept.previous === undefined || kept.previous_until === undefined) return { secret: kept.secret };
  const until = new Date(kept.previous_until) < new Date(asked) ? kept.previous_until : asked;
  return { secret: kept.secret, previous: kept.previous, previous_until: until };
}

/** The largest number of attempts to store a rotated secret; there should never be so many simultaneous rotations of one webhook's secret. */
const TRIES = 5;

/**
 * Replaces the stored secrets of a webhook by check-and-set, without a lock. Of two simultaneous rotations, the second rotation finds the first
 * rotation's secret and keeps it as the previous secret.
 */
export async function rotateKept(
  secrets: SecretStore,
  path: string,
  next: (kept: SecretData) => SecretData,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const { data, version } = await secrets.readVersion(path);
    try {
      return await secrets.write(path, next(data), version);
    } catch (error) {
      if (!(error instanceof SecretError) || error.code !== "secret_conflict" || tries === TRIES) throw error;
    }
  }
}
