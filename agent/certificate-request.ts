import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { nodeUri } from "../shared/api/enroll.ts";
import type { NodeId } from "../shared/ids.ts";

/**
 * The agent writes a PKCS#10 certificate request (RFC 2986) for a P-256 key in the encoding DER, whose elements begin with tags. The agent writes its
 * certificate requests without a library, which would take a fifth of the idle agent's memory (decision I8). The hub reads and verifies certificate
 * requests with a library.
 */
const TAG = { integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06, utf8: 0x0c, sequence: 0x30, set: 0x31 } as const;
/** Two context-specific tags of DER: a URI as the subject's name, and the attributes of a certificate request. */
const CONTEXT = { uri: 0x86, attributes: 0xa0 } as const;
const OID = {
  commonName: "550403",
  extensionRequest: "2a864886f70d01090e",
  subjectAltName: "551d11",
  ecdsaWithSha256: "2a8648ce3d040302",
} as const;

/** The private key, in PKCS#8 PEM, never leaves the host. */
export const makeKey = (): string =>
  generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();

/** The certificate request names only this node. */
export function makeRequest(keyPem: string, nodeId: NodeId): string {
  const key = createPrivateKey(keyPem);
  const names = sequence(der(CONTEXT.uri, Buffer.from(nodeUri(nodeId))));
  const extension = sequence(oid(OID.subjectAltName), der(TAG.octets, names));
  const body = sequence(
    der(TAG.integer, Buffer.from([0])),
    sequence(der(TAG.set, sequence(oid(OID.commonName), der(TAG.utf8, Buffer.from(nodeId))))),
    createPublicKey(key).export({ type: "spki", format: "der" }),
    der(CONTEXT.attributes, sequence(oid(OID.extensionRequest), der(TAG.set, sequence(extension)))),
  );
  // The first byte of a DER bit string is the number of unused bits in its last byte.
  const signature = der(TAG.bits, Buffer.from([0]), sign("sha256", body, key));
  const request = sequence(body, sequence(oid(OID.ecdsaWithSha256)), signature);
  const lines = request.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE REQUEST-----", ...lines, "-----END CERTIFICATE REQUEST-----", ""].join("\n");
}

const sequence = (...parts: readonly Buffer[]): Buffer => der(TAG.sequence, ...parts);
const oid = (hex: string): Buffer => der(TAG.oid, Buffer.from(hex, "hex"));

/** Two bytes are enough for the length of a DER element, because a certificate request has a few hundred bytes. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
