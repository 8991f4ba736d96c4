/**
 * The certificate and key of the admin listener, from the operator's own files. The hub reads its TLS files again when they change and when it gets
 * SIGHUP.
 */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { Log } from "../../shared/log.ts";
import { Secret } from "../../shared/secret.ts";
import { type Periodic, periodically } from "../timing/periodically.ts";

export interface TlsPaths {
  /** A PEM file with the server's certificate first, followed by the intermediate certificates. */
  readonly certFile: string;
  /** A PEM file with the server's private key, without a passphrase. */
  readonly keyFile: string;
}

/** The message of a `TlsFilesError` names the setting to correct, and reveals nothing of the content of the TLS files. */
export class TlsFilesError extends Error {
  override readonly name = "TlsFilesError";
}

interface Pair {
  readonly cert: string;
  readonly key: Secret;
  readonly notAfter: Date;
}

const LOOK_EVERY_MS = 5_000;
const reasonOf = (error: unknown): string =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "not PEM";

async function readPair({ certFile, keyFile }: TlsPaths): Promise<Pair> {
  const read = (setting: string, file: string): Promise<string> =>
    readFile(file, "utf8").catch((error: unknown) => {
      throw new TlsFilesError(`${setting}: ${file} could not be read (${reasonOf(error)}).`);
    });
  const cert = await read("MUSTER_HTTP_TLS_CERT", certFile);
  const key = await read("MUSTER_HTTP_TLS_KEY", keyFile);
  try {
    const notAfter = new X509Certificate(cert).validToDate;
    createSecureContext({ cert, key });
    return { cert, key: new Secret(key), notAfter };
  } catch (error) {
    throw new TlsFilesError(
      `MUSTER_HTTP_TLS_CERT and MUSTER_HTTP_TLS_KEY: ${certFile} and ${keyFile} are not a certificate and its key, both in PEM and the key without a passphrase (${reasonOf(error)}).`,
    );
  }
}

export interface TlsFiles {
  context(): SecureContextOptions;
  /** The end of the certificate in use. */
  notAfter(): Date;
  /** Serves new connections with the present content of the TLS files. An open connection keeps the certificate with which it began. */
  follow(server: { setSecureContext(context: SecureContextOptions): void }): { close(): Promise<void> };
}

/**
 * Reads the TLS files at the hub's start, and throws if they cannot be used. If changed TLS files cannot be used later, the hub logs one warning and
 * keeps the last valid content in use.
 */
export async function openTlsFiles(paths: TlsPaths, log: Log, everyMs = LOOK_EVERY_MS): Promise<TlsFiles> {
  let pair = await readPair(paths);
  const context = (): SecureContextOptions => ({ cert: pair.cert, key: pair.key.reveal(), minVersion: "TLSv1.2" });
  const tell = (): void => log.info("admin certificate read", { not_after: pair.notAfter.toISOString() });
  tell();
  return {
    context,
    notAfter: () => pair.notAfter,
    follow: (server) => {
      let told = "";
      const turn = async (): Promise<void> => {
        try {
          const next = await readPair(paths);
          told = "";
          if (next.cert === pair.cert && next.key.reveal() === pair.key.reveal()) return;
          pair = next;
          server.setSecureContext(context());
          tell();
        } catch (error) {
          if (!(error instanceof TlsFilesError)) throw error;
          if (told !== error.message)
            log.warn("the new admin certificate cannot be used; the last valid one stays in use", { error });
          told = error.message;
        }
      };
      const looks: Periodic = { everyMs, turn, log, failed: "the files of the admin certificate could not be checked" };
      const looking = periodically(looks);
      const atOnce = (): void => void turn().catch((error: unknown) => log.warn(looks.failed, { error }));
      process.on("SIGHUP", atOnce);
      return {
        close: async () => {
          process.off("SIGHUP", atOnce);
          await looking.close();
        },
      };
    },
  };
}
