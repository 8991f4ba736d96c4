import { createHash } from "node:crypto";
import { encrypt } from "unixcrypt";
import { composeUserData } from "../../../cloud-init/compose.ts";
import type { UserDataValues } from "../../../cloud-init/input.ts";
import { failure } from "../../../shared/failures.ts";
import { Secret } from "../../../shared/secret.ts";
import { listRoceOfHost } from "../../db/queries/roce-assignments.ts";
import { SECRET_PATHS, SecretError } from "../../secrets/port.ts";
import { StageFailure } from "../stage-failure.ts";
import type { ProvisionContext } from "./context.ts";

/** The user-data of a host's first boot is a secret, because it contains the host's enrollment token. */
export interface RenderedUserData {
  readonly base64: Secret;
  readonly sha256: string;
  readonly parts: readonly string[];
}

export const sha256Of = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Throws `user_data_invalid` if a value cannot be part of a host's user-data. */
export async function renderUserData(
  context: ProvisionContext,
  enrollment: { nodeId: UserDataValues["nodeId"]; generation: number; token: Secret },
): Promise<RenderedUserData> {
  const { firstBoot, db } = context.services;
  const { host, site, profile } = context;
  // In a reinstall the tenant keeps the data disks, so the first boot mounts the `/shareN` file systems that it finds, and formats nothing.
  const keepsData = context.operation === "reinstall";
  const roce = profile.enablePhase2Roce ? await listRoceOfHost(db, site.id, host.hostname) : [];
  const agentPackage = await firstBoot.agentPackage(profile.architecture.split("/", 1)[0] ?? "");
  const composed = composeUserData({
    hostname: host.hostname,
    nodeId: enrollment.nodeId,
    generation: enrollment.generation,
    hub: { agentUrl: firstBoot.agentUrl, ...firstBoot.keys() },
    enrollmentToken: enrollment.token.reveal(),
    agent: agentPackage === null ? {} : { packageUrl: agentPackage.url, packageSha256: agentPackage.sha256 },
    ...siteBootstrap(profile.siteBootstrapBundleRef),
    hardwareSync: {
      enabled: profile.requireHwSync,
      maasUrl: site.apiBaseUrl,
      intervalSeconds: profile.hardwareSyncIntervalSeconds,
    },
    extraDisks: {
      enabled: profile.initializeExtraDisks || keepsData,
      eraseSignatures: profile.eraseUnexpectedSignatures && !keepsData,
      keepOnly: keepsData,
    },
    roce: { assignments: roce.map((row) => ({ interface: row.interface, ipv4Cidr: row.ipv4Cidr })) },
    deployUser: { name: site.deployUser, passwordHash: await deployPasswordHash(context), sudo: true },
  });
  if (!composed.ok) {
    throw new StageFailure(failure("input_config_error", "user_data_invalid", composed.error.message));
  }
  const { base64, parts } = composed.userData;
  return { base64: new Secret(base64), sha256: sha256Of(base64), parts: parts.map((part) => part.name) };
}

/**
 * The site's own bootstrap scripts, its bootstrap bundle, run at a host's first boot (lifecycle 9). A profile names its bootstrap bundle by a URL
 * with a checksum, for example `https://files.site.example/bootstrap-7.sh#sha256=<64 hex>`. The host runs the bootstrap bundle only if the bundle has
 * the checksum that the URL names. The query of a signed URL contains a secret, so logs, statuses and messages name a site's bootstrap bundle without
 * the query of its URL.
 */
export function siteBootstrap(ref: string | null): Pick<UserDataValues, "siteBootstrap"> {
  if (ref === null) return {};
  const match = /^(https?:\/\/[^#]+)#sha256=([0-9a-f]{64})$/.exec(ref);
  const [, url, sha256] = match ?? [];
  if (url !== undefined && sha256 !== undefined)
    return { siteBootstrap: { ref: url.replace(/\?.*$/, ""), url, sha256 } };
  const message = `The profile's site bootstrap reference is not of the form https://...#sha256=<64 hex digits>. Correct the profile, then rerun.`;
  throw new StageFailure(failure("input_config_error", "user_data_invalid", message));
}

/** The host gets only a hash of the deploy password, whose clear text stays in the hub. */
async function deployPasswordHash({ services, site }: ProvisionContext): Promise<string> {
  const path = site.deployPasswordVaultPath ?? SECRET_PATHS.deployPassword(site.id);
  const { password } = await services.secrets.read(path);
  if (password === undefined || password === "") {
    throw new SecretError("secret_missing", path, "The secret holds no deploy password");
  }
  return encrypt(password);
}
