import "reflect-metadata";
import { webcrypto } from "node:crypto";
import * as x509 from "@peculiar/x509";

x509.cryptoProvider.set(webcrypto as never);

/** The polyfill of the X.509 library must load before the library, so only `x509.ts` imports the library. */
export { x509 };

export const KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
export const SIGNING_ALGORITHM = { name: "ECDSA", hash: "SHA-256" } as const;

/** Returns the one spelling of a certificate's serial number: lower-case hex without leading zeros. */
export const serialOf = (hex: string): string => hex.toLowerCase().replace(/^0+(?=.)/, "");
