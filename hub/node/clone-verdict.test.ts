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

describe("what a certificate is worth, by all facts that there are", () => {
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

  it("never bars the holder of one that counts, nor for a request that was on its way when it was replaced", () => {
    fc.assert(
      fc.property(fc.constantFrom(...all), (facts) => {
        if (!facts.replaced) expect(["accepted", "revoked"]).toContain(certificateVerdict(facts));
        if (facts.asks !== "successor_of_new_key" && facts.seenForMs === null)
          expect(["accepted", "revoked", "replaced"]).toContain(certificateVerdict(facts));
      }),
    );
  });
});

describe("what two sessions show", () => {
  const BOOTS = ["same", "new", "returned"] as const;
  const ADDRESSES = ["same", "other", "unknown"] as const;
  const LIVES = ["unknown", "spoke", "answered_displacement"] as const;
  const all: SessionFacts[] = BOOTS.flatMap((boot) =>
    ADDRESSES.flatMap((address) =>
      LIVES.flatMap((life) => [true, false].map((displacedBefore) => ({ boot, address, life, displacedBefore }))),
    ),
  );
  /** Everything that is not here is one host. */
  const expected = ({ boot, address, life, displacedBefore }: SessionFacts): string | null => {
    const key = `${life} ${boot} ${address} ${displacedBefore}`;
    if (/^spoke returned/.test(key)) return "boots_alternate";
    if (/^answered_displacement (new|returned)/.test(key)) return "two_boots_at_once";
    if (/^answered_displacement same other/.test(key)) return "two_addresses_at_once";
    if (/^answered_displacement same (same|unknown) true/.test(key)) return "sessions_displace_each_other";
    return null;
  };

  it.each(all)("%o", (facts) => expect(sessionVerdict(facts)).toBe(expected(facts)));

  it.each<[string, Omit<SessionFacts, "displacedBefore">]>([
    ["the agent was restarted", { boot: "same", address: "same", life: "unknown" }],
    ["the host was rebooted", { boot: "new", address: "same", life: "spoke" }],
    ["the host was rebooted, and got another address by DHCP", { boot: "new", address: "other", life: "spoke" }],
    ["the hub was restarted, or the agent came to another one", { boot: "same", address: "same", life: "spoke" }],
    ["a NAT gave another address, and the old connection hung on", { boot: "same", address: "other", life: "unknown" }],
    ["the old connection was dead, and the hub had not seen it", { boot: "new", address: "other", life: "unknown" }],
    ["a hello of the boot before was read late", { boot: "returned", address: "other", life: "unknown" }],
    ["WebSocket and long poll took turns", { boot: "same", address: "same", life: "spoke" }],
  ])("is one host when %s, however often", (_what, facts) => {
    for (const displacedBefore of [true, false]) expect(sessionVerdict({ ...facts, displacedBefore })).toBeNull();
  });
});
