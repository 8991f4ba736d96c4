import { createHash } from "node:crypto";
import { z } from "zod";
import type { Begun } from "./provider.ts";

const Random = z.string().regex(/^[A-Za-z0-9_-]{16,128}$/);
/** The path, from `console/` on, to which a browser returns after its sign-in; such a path can name no other server. */
const Place = z.string().regex(/^console\/[\x21-\x7e]{0,512}$/);

const Kept = z.strictObject({ state: Random, nonce: Random, verifier: Random, place: Place });
/** A sign-in that a browser has begun: the values for the provider's answer, and the screen to which the browser returns. */
export type KeptSignIn = Begun & { readonly place: string };

export const placeOf = (text: string | undefined): string => Place.safeParse(text).data ?? "console/";

/** The browser keeps the sign-in in a cookie, because any hub may get the provider's answer, and hubs share nothing but the database. */
export const toCookie = ({ state, nonce, verifier, place }: KeptSignIn): string =>
  [state, nonce, verifier, Buffer.from(place).toString("base64url")].join(".");

/** Returns null for a cookie that no hub has written. */
export function fromCookie(value: string | null): KeptSignIn | null {
  if (value === null || value.length > 2_048) return null;
  const [state, nonce, verifier, place = "", ...more] = value.split(".");
  if (more.length > 0) return null;
  return (
    Kept.safeParse({ state, nonce, verifier, place: Buffer.from(place, "base64url").toString("utf8") }).data ?? null
  );
}

export const stateHash = (state: string): string => createHash("sha256").update(state).digest("hex");
