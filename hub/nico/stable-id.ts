import { createHash } from "node:crypto";

/**
 * Returns a UUID for a thing that has a name but no UUID in Muster, such as an SKU or a tenant. The UUID that `stableId` returns is the same on every
 * hub and for ever, because it is made from the kind and the name alone (RFC 9562, version 8: the first 122 free bits of the SHA-256 of the kind and
 * the name).
 */
export function stableId(kind: "sku" | "tenant" | "expected" | "vpc" | "provider", name: string): string {
  const hash = createHash("sha256").update(`muster/nico/${kind}/${name}`).digest();
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x80, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = hash.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}
