import { generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { followTrust, sequenceOf, type Trust, type TrustStatement, trustSigningText } from "./trust.ts";

const CA = "-----BEGIN CERTIFICATE-----".padEnd(80, "x");
const keys = Array.from({ length: 5 }, () => generateKeyPairSync("ed25519"));
const publicOf = (at: number): string => keys[at]?.publicKey.export({ format: "jwk" }).x ?? "";
const privateOf = (at: number): KeyObject => keys[at]?.privateKey as KeyObject;
const isSigned = (key: string, text: string, signature: string): boolean => {
  const at = keys.findIndex((_, index) => publicOf(index) === key);
  const known = keys[at];
  return known !== undefined && verify(null, Buffer.from(text), known.publicKey, Buffer.from(signature, "base64url"));
};
function stated(sequence: number, kind: TrustStatement["kind"], generation: number, by: number): TrustStatement {
  const unsigned = { sequence, kind, generation, ca_pem: `${CA}${generation}`, order_key: publicOf(generation) };
  const signature = sign(null, Buffer.from(trustSigningText(unsigned)), privateOf(by)).toString("base64url");
  return { ...unsigned, signature };
}
/** In the test's chain of key statements, the key generations 2 and 4 came into force, and key generation 3 was aborted. */
const CHAIN = [
  stated(1, "announce", 2, 1),
  stated(2, "finish", 2, 1),
  stated(3, "announce", 3, 2),
  stated(4, "abort", 3, 2),
  stated(5, "announce", 4, 2),
  stated(6, "finish", 4, 2),
];
const given = (at: number): Trust => ({
  sequence: sequenceOf(CHAIN, publicOf(at)),
  current: { ca_pem: CA, order_key: publicOf(at) },
  next: null,
});

describe("the chain of the hub's keys", () => {
  it.each([1, 2])("is followed to its end from the key of generation %i", (generation) => {
    const { trust, fault } = followTrust(given(generation), CHAIN, isSigned);
    expect(fault).toBeNull();
    expect(trust).toEqual({ sequence: 6, current: { ca_pem: `${CA}4`, order_key: publicOf(4) }, next: null });
  });

  it("can be followed in any pieces, and never backwards", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(CHAIN.length)), (ends) => {
        let trust = given(1);
        for (const end of ends) {
          const before = trust.sequence;
          ({ trust } = followTrust(trust, CHAIN.slice(0, end), isSigned));
          expect(trust.sequence).toBe(Math.max(before, end));
        }
        expect(followTrust(trust, CHAIN, isSigned).trust.sequence).toBe(6);
      }),
    );
  });

  it("is trusted up to the first statement that was changed, left out, or signed by another key", () => {
    fc.assert(
      fc.property(
        fc.nat(CHAIN.length - 1),
        fc.constantFrom("kind", "generation", "ca_pem", "order_key", "signature", "gone", "stranger"),
        (at, how) => {
          const one = CHAIN[at] as TrustStatement;
          const other = {
            kind: one.kind === "announce" ? "finish" : "announce",
            generation: one.generation + 1,
            ca_pem: `${CA}evil`,
            order_key: publicOf(0),
            signature: CHAIN[(at + 1) % CHAIN.length]?.signature,
          };
          const changed =
            how === "gone"
              ? []
              : how === "stranger"
                ? [stated(one.sequence, one.kind, one.generation, 0)]
                : [{ ...one, [how]: other[how] } as TrustStatement];
          const { trust, fault } = followTrust(given(1), CHAIN.toSpliced(at, 1, ...changed), isSigned);
          expect(trust.sequence).toBe(at);
          if (how !== "gone" || at < CHAIN.length - 1) expect(fault).not.toBeNull();
        },
      ),
    );
  });

  it("adds trust in the announced keys, and trusts only them once they are in force", () => {
    const announced = followTrust(given(1), CHAIN.slice(0, 1), isSigned).trust;
    expect([announced.current.order_key, announced.next?.order_key]).toEqual([publicOf(1), publicOf(2)]);
    const aborted = followTrust(given(2), CHAIN.slice(0, 4), isSigned).trust;
    expect([aborted.current.order_key, aborted.next]).toEqual([publicOf(2), null]);
  });

  it.each(["generation", "ca_pem", "order_key"] as const)("must finish with the announced %s", (member) => {
    const { signature: _other, ...one } = stated(2, "finish", 2, 1);
    const unsigned = { ...one, [member]: stated(2, "finish", 3, 1)[member] };
    const signature = sign(null, Buffer.from(trustSigningText(unsigned)), privateOf(1)).toString("base64url");
    const { trust, fault } = followTrust(given(1), [stated(1, "announce", 2, 1), { ...unsigned, signature }], isSigned);
    expect([trust.sequence, fault]).toEqual([1, expect.stringContaining("was not announced")]);
  });

  it.each<[string, TrustStatement[]]>([
    ["ends what was not announced", [stated(1, "finish", 2, 1)]],
    ["announces twice", [stated(1, "announce", 2, 1), stated(2, "announce", 3, 1)]],
    ["ends another generation than the announced one", [stated(1, "announce", 2, 1), stated(2, "finish", 3, 1)]],
    ["is signed by the key that it announces", [stated(1, "announce", 2, 2)]],
  ])("is not trusted when it %s", (_what, chain) => {
    const { trust, fault } = followTrust(given(1), chain, isSigned);
    expect([trust.sequence, fault]).toEqual([chain.length - 1, expect.any(String)]);
  });
});
