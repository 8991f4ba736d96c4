import { z } from "zod";

/** The largest number of probes in one profile. */
const MOST_PROBES = 8;
/** The shortest time between two probes of one kind at one host, which also bounds what a profile can ask of the network and of the host's logs. */
const SHORTEST_INTERVAL_SECONDS = 10;
/** A probe is stale when the results of three probes in a row are missing. */
const MISSED_RESULTS = 3;

const Port = z.int().min(1).max(65_535);
const Threshold = z.int().min(1).max(10);
const common = {
  name: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,47}$/, "must be a lower-case word of letters, digits and _")
    .describe("The result is the node's condition probe.<name>, which a readiness policy may ask for"),
  interval_seconds: z
    .int()
    .min(SHORTEST_INTERVAL_SECONDS)
    .max(3_600)
    .describe("The time between two probes of one host, which the hub varies by a tenth")
    .default(60),
  timeout_seconds: z.int().min(1).max(10).describe("A host that does not answer for so long has failed").default(5),
  successes: Threshold.describe("How many successes in a row make the condition True").default(1),
  failures: Threshold.describe("How many failures in a row make the condition False").default(3),
};
const ofHttp = {
  path: z
    .string()
    .max(256)
    .regex(/^\/[\x21-\x7e]*$/, "must begin with / and contain only printable ASCII characters")
    .default("/"),
  expected_status: z.int().min(200).max(599).describe("The hub follows no redirects").default(200),
  host_header: z
    .string()
    .max(260)
    .regex(/^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?$/, "must be a host name, with or without a port")
    .nullable()
    .describe("The header Host and the name in TLS, in place of the node's address")
    .default(null),
};

/** How the hub tests from outside whether a host answers. The hub connects only to the address of the node, so a probe names no address. */
export const Probe = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("tcp"), ...common, port: Port }),
  z.strictObject({ kind: z.literal("ssh"), ...common, port: Port.default(22) }),
  z.strictObject({ kind: z.literal("http"), ...common, port: Port.default(80), ...ofHttp }),
  z.strictObject({
    kind: z.literal("https"),
    ...common,
    port: Port.default(443),
    ...ofHttp,
    verify_tls: z
      .boolean()
      .describe("Fail if the certificate is not valid for the name or of no CA that the hub's system trusts")
      .default(true),
  }),
]);
export type Probe = z.output<typeof Probe>;

export const PROBE_KINDS = ["tcp", "ssh", "http", "https"] as const satisfies readonly Probe["kind"][];

export const Probes = z
  .array(Probe)
  .max(MOST_PROBES)
  .refine((probes) => new Set(probes.map(({ name }) => name)).size === probes.length, "names a probe twice");
export type Probes = z.output<typeof Probes>;

/** The type of the condition that has the results of a probe. */
export const conditionTypeOf = ({ name }: Pick<Probe, "name">): `probe.${string}` => `probe.${name}`;

/**
 * The time in seconds for which a result of a probe stays valid. If no newer result of a probe comes while the last one is valid, the probe's
 * condition is stale, because no hub probes the host any more.
 */
export const lifeSecondsOf = ({ interval_seconds, timeout_seconds }: Probe): number =>
  MISSED_RESULTS * (interval_seconds + timeout_seconds);
