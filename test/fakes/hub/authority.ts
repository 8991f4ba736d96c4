import "reflect-metadata";
import { randomBytes, webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

const KEY = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING = { name: "ECDSA", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;
x509.cryptoProvider.set(webcrypto as never);

export class TestAuthority {
  readonly caPem: string;
  readonly #keys: CryptoKeyPair;
  private constructor(caPem: string, keys: CryptoKeyPair) {
    this.caPem = caPem;
    this.#keys = keys;
  }

  static async make(): Promise<TestAuthority> {
    const keys = await makeKeys();
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: serial(),
      name: "CN=Test CA",
      notBefore: new Date(Date.now() - DAY_MS),
      notAfter: new Date(Date.now() + DAY_MS),
      keys,
      signingAlgorithm: SIGNING,
      extensions: [new x509.BasicConstraintsExtension(true, 1, true)],
    });
    return new TestAuthority(certificate.toString("pem"), keys);
  }

  async server(notAfter = new Date(Date.now() + DAY_MS)): Promise<{ key: string; cert: string }> {
    const keys = await makeKeys();
    const names = new x509.SubjectAlternativeNameExtension([{ type: "ip", value: "127.0.0.1" }]);
    const cert = await this.#sign("CN=hub", keys.publicKey, notAfter, [names]);
    const key = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
    return { key: x509.PemConverter.encode(key, "PRIVATE KEY"), cert };
  }

  async client(csrPem: string, notAfter: Date): Promise<string> {
    const request = new x509.Pkcs10CertificateRequest(csrPem);
    if (!(await request.verify())) throw new Error("the request is not signed with its own key");
    return this.#sign(request.subject, await request.publicKey.export(), notAfter, [...request.extensions]);
  }

  async #sign(
    subject: string,
    publicKey: webcrypto.CryptoKey,
    notAfter: Date,
    extensions: x509.Extension[],
  ): Promise<string> {
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: serial(),
      subject,
      issuer: "CN=Test CA",
      notBefore: new Date(Math.min(Date.now(), notAfter.getTime()) - 3_600_000),
      notAfter,
      signingKey: this.#keys.privateKey,
      publicKey,
      signingAlgorithm: SIGNING,
      extensions,
    });
    return certificate.toString("pem");
  }
}

/** Tests compare the public keys of certificate requests, because two requests of one host for one key differ in their signatures. */
export const publicKeyOf = (csrPem: string): string =>
  new x509.Pkcs10CertificateRequest(csrPem).publicKey.toString("base64");

type CryptoKeyPair = webcrypto.CryptoKeyPair;
const makeKeys = (): Promise<CryptoKeyPair> => webcrypto.subtle.generateKey(KEY, true, ["sign", "verify"]);
const serial = (): string => `01${randomBytes(12).toString("hex")}`;
