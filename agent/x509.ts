import "reflect-metadata";
import { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";
import { nodeUri } from "../shared/api/enroll.ts";
import type { NodeId } from "../shared/ids.ts";

/** Loaded only to enroll or to renew: an idle agent does not hold it. */
x509.cryptoProvider.set(webcrypto as never);
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;

/** A new key that never leaves the host, as PKCS#8 PEM. */
export async function makeKey(): Promise<string> {
  const { privateKey } = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", privateKey), "PRIVATE KEY");
}

/** A certificate request that names this node and nothing else, signed by the key. */
export async function makeRequest(keyPem: string, nodeId: NodeId): Promise<string> {
  const der = x509.PemConverter.decode(keyPem)[0];
  if (der === undefined) throw new Error("the key file holds no PEM");
  const privateKey = await webcrypto.subtle.importKey("pkcs8", der, ALGORITHM, true, ["sign"]);
  const { d: _secret, key_ops: _ops, ...publicJwk } = await webcrypto.subtle.exportKey("jwk", privateKey);
  const publicKey = await webcrypto.subtle.importKey("jwk", publicJwk, ALGORITHM, true, ["verify"]);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: `CN=${nodeId}`,
    keys: { privateKey, publicKey },
    signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: "url", value: nodeUri(nodeId) }])],
  });
  return request.toString("pem");
}
