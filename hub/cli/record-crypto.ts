import { createHash, createPublicKey, verify, X509Certificate } from "node:crypto";
import type { RecordCrypto } from "../../shared/sanitization-verify.ts";

const hex = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** `readable` returns null if the text is no key or certificate. */
function readable<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    // The verification of a sanitization record later reports an unreadable key or certificate as a fault.
    return null;
  }
}

export const RECORD_CRYPTO: RecordCrypto = {
  sha256: hex,
  certificate: (pem) =>
    readable(() => {
      const certificate = new X509Certificate(pem);
      const { publicKey } = certificate;
      return {
        serial: certificate.serialNumber.toLowerCase().replace(/^0+(?=.)/, ""),
        sha256: hex(certificate.raw),
        publicKeySha256: hex(publicKey.export({ type: "spki", format: "der" })),
        verify: (text, signature) =>
          readable(() => verify("sha256", Buffer.from(text), publicKey, Buffer.from(signature, "base64"))) === true,
      };
    }),
  orderKey: (pem) =>
    readable(() => {
      const { crv, x } = createPublicKey(pem).export({ format: "jwk" });
      return crv === "Ed25519" && x !== undefined ? x : null;
    }),
  verifyOrder: (orderKey, text, signature) =>
    readable(() => {
      const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: orderKey }, format: "jwk" });
      return verify(null, Buffer.from(text), key, Buffer.from(signature, "base64url"));
    }) === true,
};
