import { z } from "zod";
import { Hostname, InterfaceName, Ipv4Cidr, LinuxUserName, MacAddress } from "../shared/api/values.ts";
import { NodeId } from "../shared/ids.ts";

/**
 * A text that must be one line, because it becomes one line of a systemd unit, of a table or of a header on the host. A line break in a one-line text
 * would add a line to the file that contains the text.
 */
const OneLine = z
  .string()
  .min(1)
  .max(2048)
  .regex(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+$/u, "must be one line without control characters");
/** The input's URLs appear in status messages of the first boot, so the URLs must not contain a password. */
const lineUrl = (protocol: RegExp) =>
  OneLine.pipe(z.url({ protocol })).refine((text) => {
    const url = URL.parse(text);
    return url !== null && url.username === "" && url.password === "";
  }, "must not carry a user name or password");
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits in lower case");
const CertificateBundle = z
  .string()
  .regex(
    /^(?:-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+$/,
    "must be PEM certificates and nothing else",
  );
const Ed25519PublicKey = z
  .string()
  .regex(
    /^(?:[A-Za-z0-9_-]{43}|-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----\s*)$/,
    "must be a raw Ed25519 public key in base64url, or PEM",
  );

/**
 * The URL of the agent's package, for images that do not contain the agent. The host installs the agent's package only if the package has the SHA-256
 * `packageSha256`.
 */
const AgentPackage = z
  .strictObject({ packageUrl: lineUrl(/^https?$/).optional(), packageSha256: Sha256.optional() })
  .refine((agent) => (agent.packageUrl === undefined) === (agent.packageSha256 === undefined), {
    message: "packageUrl and packageSha256 go together",
    path: ["packageSha256"],
  });

/**
 * The archive or script with which a site sets up its own hosts at their first boot; the site owns and versions it. Muster gives the host the URL,
 * version and checksum of the site's bootstrap scripts, but knows nothing of their content (lifecycle 2.4, 9).
 */
const SiteBootstrap = z.strictObject({
  ref: OneLine,
  url: lineUrl(/^https?$/),
  sha256: Sha256,
  version: OneLine.optional(),
  /** The time limit for the run of the site's bootstrap scripts, so that a hanging script does not block the agent's installation. */
  timeoutSeconds: z.int().min(1).max(7200).default(1800),
});

const DeployUser = z.strictObject({
  name: LinuxUserName,
  /** The deploy user's password as a crypt(3) SHA-512 hash. The clear text of the deploy user's password never leaves the hub. */
  passwordHash: z
    .string()
    .regex(
      /^\$6\$(?:rounds=[0-9]{4,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{86}$/,
      "must be a crypt(3) SHA-512 hash ($6$salt$hash)",
    ),
  sshAuthorizedKeys: z
    .array(
      z
        .string()
        .max(16_384)
        .regex(
          /^(?:ssh-|ecdsa-|sk-)[A-Za-z0-9@.-]+ [A-Za-z0-9+/=]+(?: [^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]*)?$/u,
          "must be an OpenSSH public key",
        ),
    )
    .max(256)
    .default([]),
  sudo: z.boolean(),
});

/**
 * The input from which the hub renders a host's first boot (lifecycle 9). The input does not contain the machine's MAAS token for hardware sync,
 * because MAAS makes this token only at the deploy (decision M3).
 */
export const UserDataInput = z.strictObject({
  hostname: Hostname,
  nodeId: NodeId,
  /**
   * The node's generation, which rises with each onboarding. If cloud-init runs the script that installs the agent a second time, an agent that is
   * enrolled for the present generation keeps its identity.
   */
  generation: z.int().min(0),
  hub: z.strictObject({
    agentUrl: lineUrl(/^https$/),
    caBundlePem: CertificateBundle,
    taskSigningPublicKey: Ed25519PublicKey,
  }),
  /** The agent sends the enrollment token in a header and stores it in a one-line file. */
  enrollmentToken: z.string().regex(/^[!-~]{32,128}$/, "must be 32 to 128 printable ASCII characters without spaces"),
  agent: AgentPackage,
  siteBootstrap: SiteBootstrap.optional(),
  hardwareSync: z.strictObject({
    enabled: z.boolean(),
    maasUrl: lineUrl(/^https?$/).optional(),
    intervalSeconds: z.int().min(60).max(86_400),
  }),
  /**
   * Formatting or erasing extra disks destroys data, so the flags for it must be set explicitly and have no default (lifecycle 4.3). With `keepOnly`
   * the host mounts the data disks that Muster formatted at an earlier installation, and touches no other disk.
   */
  extraDisks: z.strictObject({ enabled: z.boolean(), eraseSignatures: z.boolean(), keepOnly: z.boolean() }),
  roce: z.strictObject({
    assignments: z
      .array(z.strictObject({ interface: InterfaceName, ipv4Cidr: Ipv4Cidr, mac: MacAddress.optional() }))
      .max(64)
      .refine((rows) => new Set(rows.map((row) => row.interface)).size === rows.length, "names an interface twice"),
  }),
  deployUser: DeployUser.optional(),
});
export type UserDataInput = z.output<typeof UserDataInput>;
export type UserDataValues = z.input<typeof UserDataInput>;
