import { z } from "zod";
import { Secret } from "../../shared/secret.ts";
import { type SecretData, SecretError, type SecretStore } from "../secrets/port.ts";

/** The two secrets of a rotation, as the secret store holds them. `previous_until` is in ISO 8601. */
const Kept = z.object({ secret: z.string(), previous: z.string().optional(), previous_until: z.string().optional() });

/** The secrets that sign a delivery at the given time. */
export function signingKeys(data: SecretData, now: Date): Secret[] {
  const { secret, previous, previous_until: until } = Kept.parse(data);
  return previous !== undefined && until !== undefined && new Date(until) > now
    ? [new Secret(secret), new Secret(previous)]
    : [new Secret(secret)];
}

/**
 * The stored value after a rotation to a new secret. If the same secret is sent again, it does not become its own predecessor, so a repeated request
 * changes nothing. The previous secret then ends at the earlier of the two end times, so a shorter overlap takes effect at once.
 */
export function rotated(data: SecretData, secret: Secret, overlapSeconds: number, now: Date): SecretData {
  const kept = Kept.parse(data);
  const asked = new Date(now.getTime() + overlapSeconds * 1000).toISOString();
  if (kept.secret !== secret.reveal()) return { secret: secret.reveal(), previous: kept.secret, previous_until: asked };
  if (kept.previous === undefined || kept.previous_until === undefined) return { secret: kept.secret };
  const until = new Date(kept.previous_until) < new Date(asked) ? kept.previous_until : asked;
  return { secret: kept.secret, previous: kept.previous, previous_until: until };
}

/** The limit of tries; more simultaneous rotations are not expected. */
const TRIES = 5;

/**
 * Replaces the stored value by check-and-set, without a lock. Of two simultaneous rotations, the second one finds the first one's secret and keeps it
 * as the previous one.
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
