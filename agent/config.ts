import { join } from "node:path";
import { z } from "zod";
import { NodeId } from "../shared/ids.ts";
import { isSigningKey } from "./orders.ts";
import { readTextNow } from "./system/files.ts";

/**
 * The configuration file of the agent, which a bootstrap part writes. Paths in the agent's configuration file start at the host's root folder,
 * `root`.
 */
const ConfigFile = z.object({
  hub_url: z.url({ protocol: /^https$/ }),
  node_id: NodeId,
  generation: z.int().min(0),
  enrollment_token_file: z.string().startsWith("/"),
  ca_file: z.string().startsWith("/"),
  task_signing_public_key: z
    .string()
    .refine(isSigningKey, { error: "must be an Ed25519 key: base64url of 32 bytes, or PEM" }),
  /** The field `root` is set only if a folder stands for the host's root, as in tests and in the demo. */
  root: z.string().startsWith("/").optional(),
});

export interface Config {
  readonly hubUrl: URL;
  readonly nodeId: NodeId;
  readonly generation: number;
  readonly taskSigningPublicKey: string;
  /**
   * The root of the host's file system, which is `/` or a folder that stands for the host. The agent uses only paths below `root`, the root of the
   * host's file system.
   */
  readonly root: string;
  readonly tokenFile: string;
  readonly caFile: string;
  readonly stateDir: string;
}

export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

export const STATE_DIR = "/var/lib/muster/agent";

export const rootOf = (env: Readonly<Record<string, string | undefined>>): string =>
  env["MUSTER_ROOT"]?.replace(/(?<=.)\/+$/, "") || "/";

/**
 * Reads the configuration file that `--config PATH` names (default /etc/muster/agent.json) below MUSTER_ROOT. The error about an invalid
 * configuration file names all its faults, but no value of the file.
 */
export function loadConfig(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Config {
  const rootOfEnv = rootOf(env);
  const at = args.indexOf("--config");
  const path = (at >= 0 ? args[at + 1] : undefined) ?? "/etc/muster/agent.json";
  // The path after `--config` may already begin with the folder that MUSTER_ROOT names.
  const file = rootOfEnv !== "/" && path.startsWith(`${rootOfEnv}/`) ? path : join(rootOfEnv, path);
  let json: unknown;
  try {
    json = JSON.parse(readTextNow(file));
  } catch (error) {
    throw new ConfigError(`The agent's configuration ${file} cannot be read as JSON. Run the bootstrap part again.`, {
      cause: error,
    });
  }
  const parsed = ConfigFile.safeParse(json);
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
    throw new ConfigError(`The agent's configuration ${file} is not valid. ${faults.join("; ")}.`);
  }
  const config = parsed.data;
  const root = rootOfEnv === "/" ? (config.root ?? "/") : rootOfEnv;
  return {
    hubUrl: new URL(config.hub_url),
    nodeId: config.node_id,
    generation: config.generation,
    taskSigningPublicKey: config.task_signing_public_key,
    root,
    tokenFile: join(root, config.enrollment_token_file),
    caFile: join(root, config.ca_file),
    stateDir: join(root, STATE_DIR),
  };
}
