const SECRET_BYTES = 32;

/** Makes a signing secret in the browser. The hub checks that a webhook's secret has 24 to 64 bytes, and never shows the secret again. */
export function newSecret(random: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>): string {
  const bytes = random(new Uint8Array(SECRET_BYTES));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}
