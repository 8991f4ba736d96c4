import { z } from "zod";
import { Secret } from "../../shared/secret.ts";
import { type SecretData, SecretError, type SecretStore } from "../secrets/port.ts";

/** The two secrets of a rotation, as the secret store keeps them; `previous_until` in ISO 8601. */
const Kept = z.object({ secret: z.string(), previous: z.string().optional(), previous_until: z.string().optional() });

/** What a delivery is signed with at that time. */
export function signingKeys(data: SecretData, now: Date): Secret[] {
  const { secret, previous, previous_until: until } = Kept.parse(data);
  return previous !== undefined && until !== undefined && new Date(until) > now
    ? [new Secret(secret), new Secret(previous)]
    : [new Secret(secret)];
}

/**
 * What is kept once the secret is the new one. Asked again with the same secret it does not become its own predecessor; the one before then ends no later
 * than is asked now, so that a repeated request changes nothing and a shorter overlap holds at once.
 */
export function rotated(data: SecretData, secret: Secret, overlapSeconds: number, now: Date): SecretData {
  const kept = Kept.parse(data);
  const asked = new Date(now.getTime() + overlapSeconds * 1000).toISOString();
  if (kept.secret !== secret.reveal()) return { secret: secret.reveal(), previous: kept.secret, previous_until: asked };
  if (kept.previous === undefined || kept.previous_until === undefined) return { secret: kept.secret };
  const until = new Date(kept.previous_until) < new Date(asked) ? kept.previous_until : asked;
  return { secret: kept.secret, previous: kept.previous, previous_until: until };
}

/** More rotations at once than anybody means. */
const TRIES = 5;

/**
 * Replaces what is kept by check-and-set, without a lock on anything: of two rotations at once the second finds the first one's secret and keeps it as
 * the one before.
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
