import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CertificateFacts,
  certificateVerdict,
  GHOST_MS,
  type SessionFacts,
  sessionVerdict,
} from "./clone-verdict.ts";

const ASKS = ["channel", "successor_of_known_key", "successor_of_new_key"] as const;
const SEEN = [null, 0, GHOST_MS - 1, GHOST_MS, 10 * GHOST_MS] as const;

describe("the verdict on a certificate, for every combination of facts", () => {
  const all: CertificateFacts[] = [true, false].flatMap((revoked) =>
    [true, false].flatMap((replaced) =>
      SEEN.flatMap((seenForMs) => ASKS.map((asks) => ({ revoked, replaced, seenForMs, asks }))),
    ),
  );

  it.each(all)("%o", (facts) => {
    const { revoked, replaced, seenForMs, asks } = facts;
    const again = seenForMs !== null && seenForMs >= GHOST_MS;
    const ofReplaced = asks === "successor_of_new_key" ? "second_key" : again ? "replaced_certificate" : "replaced";
    expect(certificateVerdict(facts)).toBe(revoked ? "revoked" : replaced ? ofReplaced : "accepted");
  });

  it("blocks neither the holder of a valid certificate nor a request that was under way when its certificate was replaced", () => {
    fc.assert(
      fc.property(fc.constantFrom(...all), (facts) => {
        if (!facts.replaced) expect(["accepted", "revoked"]).toContain(certificateVerdict(facts));
        if (facts.asks !== "successor_of_new_key" && facts.seenForMs === null)
          expect(["accepted", "revoked", "replaced"]).toContain(certificateVerdict(facts));
      }),
    );
  });
});

describe("the verdict on two sessions that were alive at once", () => {
  const all: SessionFacts[] = (["same", "other"] as const).flatMap((boot) =>
    (["same", "other"] as const).flatMap((address) =>
      [true, false].map((displacedBefore) => ({ boot, address, displacedBefore })),
    ),
  );
  const expected = ({ boot, address, displacedBefore }: SessionFacts): string | null => {
    const key = `${boot} ${address} ${displacedBefore}`;
    if (/^other/.test(key)) return "two_boots_at_once";
    if (/^same other/.test(key)) return "two_addresses_at_once";
    return key === "same same true" ? "sessions_displace_each_other" : null;
  };

  it.each(all)("%o", (facts) => expect(sessionVerdict(facts)).toBe(expected(facts)));
});
