import { createHash, randomBytes, webcrypto, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { nodeUri } from "../../shared/api/enroll.ts";
import { ApiError } from "../../shared/api/errors.ts";
import type { NodeId } from "../../shared/ids.ts";
import { Secret } from "../../shared/secret.ts";
import { SECRET_PATHS, type SecretData, SecretError, type SecretStore } from "../secrets/port.ts";
import { readMade, readOrCreate } from "../secrets/read-or-create.ts";
import { KEY_ALGORITHM, SIGNING_ALGORITHM, serialOf, x509 } from "./x509.ts";

const HOUR = 3_600_000;
const AUTHORITY_LIFE_MS = 3650 * 24 * HOUR;
/**
 * At a host's first boot, the host's clock may be wrong, e.g. by hours if the real-time clock holds local time. A host with a wrong clock must still
 * accept the hub's certificates and enroll, so that its agent can report the wrong clock.
 */
const HUB_BACKDATE_MS = 24 * HOUR;
/**
 * A host's certificate is valid from a few minutes before its issue. Only hubs check a host's certificate, so it is enough to backdate the
 * certificate by a few minutes.
 */
export const NODE_BACKDATE_MS = 5 * 60_000;
const NODE_LIFE = { life: 24 * HOUR, backdate: NODE_BACKDATE_MS };
const SERVER_LIFE = { life: 30 * 24 * HOUR, backdate: HUB_BACKDATE_MS };

export interface SignedNodeCertificate {
  readonly pem: string;
  readonly serial: string;
  readonly publicKeySha256: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/**
 * A certificate request that the hub has checked: its signature proves that the client holds the key, and the request names only the client's node.
 */
export interface CheckedRequest {
  readonly publicKey: webcrypto.CryptoKey;
  readonly publicKeySha256: string;
}

export interface CertificateAuthority {
  /** The certificates of the CAs that hosts must trust, as PEM; during a rotation also the next CA. */
  readonly caPem: string;
  readonly issuerPem: string;
  /** Checks a certificate request for a node; throws `csr_invalid` or `csr_name_mismatch`. */
  checkRequest(csrPem: string, nodeId: NodeId): Promise<CheckedRequest>;
  signNode(nodeId: NodeId, request: CheckedRequest): Promise<SignedNodeCertificate>;
  issueServer(names: readonly string[]): Promise<{ certificatePem: string; privateKeyPem: Secret; notAfter: Date }>;
  /** True if this CA signed the certificate, whatever the certificate's dates. */
  issued(certificate: X509Certificate): boolean;
}

/** The id of a host's key: the SHA-256 of its SPKI in DER. */
export const keySha256 = (spki: Uint8Array): string => createHash("sha256").update(spki).digest("hex");

/** Returns a function that tells whether the CA of `caPem` signed a certificate, whatever the certificate's dates. */
export function authorityOf(caPem: string): (certificate: X509Certificate) => boolean {
  const { publicKey } = new X509Certificate(caPem);
  return (certificate) => certificate.verify(publicKey);
}

/** The hub's reaction if one of its keys is missing in the secret store: to create the key, or to refuse because the key was lost. */
export type MissingKey = "make" | "refuse";

/**
 * Opens one generation of the hub's CA from the secret store. If the CA does not exist yet and may be created, the first hub that opens the CA
 * creates it.
 */
export async function openCertificateAuthority(
  secrets: SecretStore,
  generation = 1,
  missing: MissingKey = "make",
): Promise<CertificateAuthority> {
  const stored = await readOrMake(secrets, generation, missing);
  const privateKey = await webcrypto.subtle.importKey(
    "pkcs8",
    x509.PemConverter.decode(stored.privateKeyPem)[0] ?? new ArrayBuffer(0),
    KEY_ALGORITHM,
    false,
    ["sign"],
  );
  const certificate = new x509.X509Certificate(stored.certificatePem);
  const sign = (
    publicKey: webcrypto.CryptoKey,
    { life, backdate }: { life: number; backdate: number },
    subject: string,
    extensions: InstanceType<typeof x509.Extension>[],
  ) =>
    x509.X509CertificateGenerator.create({
      serialNumber: randomBytes(16).toString("hex"),
      issuer: certificate.subject,
      subject,
      notBefore: new Date(Date.now() - backdate),
      notAfter: new Date(Date.now() + life),
      signingKey: privateKey,
      publicKey,
      signingAlgorithm: SIGNING_ALGORITHM,
      extensions,
    });
  return {
    caPem: stored.certificatePem,
    issuerPem: stored.certificatePem,
    checkRequest,
    signNode: async (nodeId, request) => {
      const signed = await sign(request.publicKey, NODE_LIFE, `CN=${nodeId}`, [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth], true),
        new x509.SubjectAlternativeNameExtension([{ type: "url", value: nodeUri(nodeId) }]),
      ]);
      return {
        pem: signed.toString("pem"),
        serial: serialOf(signed.serialNumber),
        publicKeySha256: request.publicKeySha256,
        notBefore: signed.notBefore,
        notAfter: signed.notAfter,
      };
    },
    issueServer: async (names) => {
      const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
      const signed = await sign(keys.publicKey, SERVER_LIFE, "CN=muster-hub", [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth], true),
        new x509.SubjectAlternativeNameExtension(
          names.map((name) => ({ type: isIP(name) === 0 ? ("dns" as const) : ("ip" as const), value: name })),
        ),
      ]);
      return {
        certificatePem: signed.toString("pem"),
        privateKeyPem: new Secret(await privatePem(keys.privateKey)),
        notAfter: signed.notAfter,
      };
    },
    issued: authorityOf(stored.certificatePem),
  };
}

async function checkRequest(csrPem: string, nodeId: NodeId): Promise<CheckedRequest> {
  const refuse = (detail: string) =>
    new ApiError(
      "csr_invalid",
      `The certificate request cannot be accepted: ${detail}. Create a new key and send the request again.`,
    );
  let request: InstanceType<typeof x509.Pkcs10CertificateRequest>;
  try {
    request = new x509.Pkcs10CertificateRequest(csrPem);
    if (!(await request.verify())) throw refuse("it is not signed by its own key");
  } catch (error) {
    throw error instanceof ApiError ? error : refuse("it is not a PKCS#10 request in PEM");
  }
  const publicKey = await request.publicKey.export();
  const { name, namedCurve } = publicKey.algorithm as { name: string; namedCurve?: string };
  if (name !== KEY_ALGORITHM.name || namedCurve !== KEY_ALGORITHM.namedCurve)
    throw refuse("its key is not ECDSA P-256");
  // The hub checks every name extension of a certificate request, because a second extension could contain a name that the first extension does not
  // contain.
  const names = request.extensions
    .filter((extension) => extension instanceof x509.SubjectAlternativeNameExtension)
    .flatMap((extension) => extension.names.items);
  const [only] = names;
  if (names.length !== 1 || only?.type !== "url" || only.value !== nodeUri(nodeId)) {
    throw new ApiError(
      "csr_name_mismatch",
      `The certificate request does not name node ${nodeId}, or names more than that node. Its only subject alternative name must be ${nodeUri(nodeId)}.`,
    );
  }
  return {
    publicKey: publicKey as webcrypto.CryptoKey,
    publicKeySha256: keySha256(new Uint8Array(request.publicKey.rawData)),
  };
}

async function readOrMake(
  secrets: SecretStore,
  generation: number,
  missing: MissingKey,
): Promise<{ certificatePem: string; privateKeyPem: string }> {
  const path =
    generation === 1 ? SECRET_PATHS.certificateAuthority : SECRET_PATHS.laterCertificateAuthority(generation);
  const { certificate_pem: certificatePem, private_key_pem: privateKeyPem } =
    missing === "make" ? await readOrCreate(secrets, path, make) : await readMade(secrets, path);
  if (certificatePem === undefined || privateKeyPem === undefined)
    throw new SecretError(
      "secret_corrupt",
      path,
      "The hub's CA is not complete. Restore the secret store from a backup",
    );
  return { certificatePem, privateKeyPem };
}

async function make(): Promise<SecretData> {
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: randomBytes(16).toString("hex"),
    name: `CN=Muster CA ${randomBytes(4).toString("hex")}`,
    notBefore: new Date(Date.now() - HUB_BACKDATE_MS),
    notAfter: new Date(Date.now() + AUTHORITY_LIFE_MS),
    keys,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    ],
  });
  return { certificate_pem: certificate.toString("pem"), private_key_pem: await privatePem(keys.privateKey) };
}

const privatePem = async (key: webcrypto.CryptoKey): Promise<string> =>
  x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
