import { withoutCredentials } from "../../shared/without-credentials.ts";
import type { Attempt, AttemptTool } from "../system/attempt.ts";
import { type CommandEnd, judgeCommand } from "./command-end.ts";
import type { BlockDevice, NvmeController } from "./disk-rules.ts";
import {
  chooseForNvme,
  type NamespaceFormat,
  parseControllers,
  parseIdentify,
  parseNamespace,
  parseSanitizeLog,
  SANITIZE_LOG_BYTES,
} from "./nvme-facts.ts";
import type { PurgeRefusal, SanitizeStatus, Technique, TechniqueChoice } from "./purge-technique.ts";

export interface DriveFacts {
  readonly ok: true;
  readonly model: string;
  readonly firmware: string;
  readonly tool: string;
  readonly toolVersion: string;
  readonly status: SanitizeStatus | null;
  readonly bytes: number;
  readonly choice: TechniqueChoice;
}
export interface DriveRefusal {
  readonly ok: false;
  readonly reason: PurgeRefusal;
  readonly detail: string;
}

/** The commands that the agent sends to a disk by the tools nvme-cli or hdparm. */
export interface Drive {
  facts(): Promise<DriveFacts | DriveRefusal>;
  /** Returns the status of the disk's sanitize, or null if the agent cannot read the status now. */
  status(): Promise<SanitizeStatus | null>;
  /** Sends the purge command of a technique once, and returns whether the disk accepted it, as far as the tool tells. */
  start(technique: Technique, patienceSeconds: number): Promise<CommandEnd>;
  /** Removes the password that a lost worker process of the agent may have left on the disk. */
  clearPassword(): Promise<void>;
}

/**
 * A disk answers a question, such as the one for its serial number, in a moment. A disk that gives no answer within a minute either is broken or
 * hangs.
 */
export const ASK_TIMEOUT_MS = 60_000;
const MOST_TOLD = 200;

type Ended = Extract<Attempt, { kind: "ended" }>;

export function endedOf(end: Attempt, tool: string): Ended | DriveRefusal {
  if (end.kind === "missing") return { ok: false, reason: "tool_missing", detail: `${end.message} Install it.` };
  if (end.kind === "hung") return { ok: false, reason: "tool_failed", detail: `${tool} hangs (state ${end.state}).` };
  return end;
}
export const isRefusal = (one: object): one is DriveRefusal => "ok" in one && one.ok === false;
/** What a tool printed about a disk, as the end of a message, without the secrets that the tool may have printed. */
export const toldBy = ({ stdout, stderr }: Ended): string =>
  withoutCredentials(`${stderr} ${stdout}`).trim().slice(0, MOST_TOLD);
export const otherDisk = (told: string, serial: string | null): DriveRefusal => ({
  ok: false,
  reason: "other_disk",
  detail: `The disk says that its serial number is ${told}, and Linux says ${serial}.`,
});
export const unreadable = (detail: string): DriveRefusal => ({ ok: false, reason: "facts_unreadable", detail });

export async function versionOf(tool: string, args: readonly string[], attempt: AttemptTool): Promise<string> {
  const end = await attempt(tool, args, { timeoutMs: ASK_TIMEOUT_MS });
  return (end.kind === "ended" ? /(\d+\.[\w.+-]+)/.exec(end.stdout)?.[1] : undefined) ?? "unknown";
}

export const SANITIZE_ARGUMENTS: Partial<Record<Technique, readonly string[]>> = {
  nvme_sanitize_block: ["--sanact=2"],
  nvme_sanitize_overwrite: ["--sanact=3", "--owpass=1", "--ovrpat=0"],
  nvme_sanitize_crypto: ["--sanact=4"],
  ata_sanitize_block: ["--sanitize-block-erase"],
  ata_sanitize_crypto: ["--sanitize-crypto-scramble"],
  ata_sanitize_overwrite: ["--sanitize-overwrite-passes", "1", "--sanitize-overwrite", "hex:00000000"],
};

/**
 * The arguments with which a format of an NVMe namespace keeps the namespace's block size and metadata. Without arguments for the present format,
 * nvme-cli may choose another block size when it formats the namespace.
 */
const formatArguments = (technique: Technique, kept: NamespaceFormat | null, patienceSeconds: number): string[] => [
  `--ses=${technique === "nvme_format_crypto" ? 2 : 1}`,
  ...Object.entries(kept ?? {}).map(([name, value]) => `--${name}=${value}`),
  "--force",
  `--timeout=${patienceSeconds * 1000}`,
];

/**
 * The commands by which the agent reads facts from an NVMe controller. A fact that the agent cannot learn from the NVMe controller's answer is null.
 */
function nvmeQuestions(path: string, namespaceId: number | null, attempt: AttemptTool) {
  const bytes = async (args: readonly string[]): Promise<Buffer | DriveRefusal> => {
    const end = endedOf(await attempt("nvme", args, { timeoutMs: ASK_TIMEOUT_MS, encoding: "latin1" }), "nvme");
    if (isRefusal(end)) return end;
    return end.exitCode === 0 ? Buffer.from(end.stdout, "latin1") : unreadable(`nvme ${args[0]}: ${toldBy(end)}`);
  };
  const status = async (): Promise<SanitizeStatus | null> => {
    const length = `--log-len=${SANITIZE_LOG_BYTES}`;
    const log = await bytes(["get-log", path, "--log-id=0x81", length, "--raw-binary"]);
    return isRefusal(log) ? null : parseSanitizeLog(log);
  };
  /** Returns the namespaces of the NVMe disk. An NVMe controller that can create namespaces also lists namespaces that Linux does not see. */
  const namespaces = async (managed: boolean): Promise<number[] | null> => {
    const all = managed ? ["--all"] : [];
    const end = await attempt("nvme", ["list-ns", path, ...all], { timeoutMs: ASK_TIMEOUT_MS });
    if (end.kind !== "ended" || end.exitCode !== 0) return null;
    const found = [...end.stdout.matchAll(/^\s*\[\s*\d+\]:(0x[0-9a-f]+)\s*$/gm)].map(([, one]) => Number(one));
    return found.length === 0 ? null : found;
  };
  const format = async (): Promise<NamespaceFormat | null> => {
    if (namespaceId === null) return null;
    const read = await bytes(["id-ns", path, `--namespace-id=${namespaceId}`, "--raw-binary"]);
    return isRefusal(read) ? null : parseNamespace(read);
  };
  /** Returns the controllers of the NVMe disk, even those of other hosts and virtual machines (Identify, CNS 13h). */
  const controllers = async (): Promise<number[] | null> => {
    const read = await bytes([
      "admin-passthru",
      path,
      "--opcode=6",
      "--cdw10=0x13",
      "--data-len=4096",
      "--read",
      "--raw-binary",
    ]);
    return isRefusal(read) ? null : parseControllers(read);
  };
  return { bytes, status, namespaces, format, controllers };
}

export function nvmeDrive(device: BlockDevice, own: readonly NvmeController[], attempt: AttemptTool): Drive {
  const path = `/dev/${own[0]?.name}`;
  const namespaceId = device.namespaceId === null ? null : Number(device.namespaceId);
  const { bytes, status, namespaces, format, controllers } = nvmeQuestions(path, namespaceId, attempt);
  return {
    status,
    clearPassword: () => Promise.resolve(),
    facts: async () => {
      const read = await bytes(["id-ctrl", path, "--raw-binary"]);
      if (isRefusal(read)) return read;
      const identity = parseIdentify(read);
      if (identity === null) return unreadable("nvme id-ctrl printed no Identify Controller.");
      if (identity.serial !== device.serial) return otherDisk(identity.serial, device.serial);
      const facts = {
        identity,
        status: await status(),
        namespaces: await namespaces(identity.managesNamespaces),
        namespaceId,
        format: await format(),
        controllers: identity.sharesDisk ? await controllers() : null,
        ownControllers: own.flatMap(({ id }) => id ?? []),
      };
      return {
        ok: true,
        model: identity.model,
        firmware: identity.firmware,
        tool: "nvme",
        toolVersion: await versionOf("nvme", ["version"], attempt),
        status: facts.status,
        bytes: identity.bytes ?? device.bytes,
        choice: chooseForNvme(facts),
      };
    },
    start: async (technique, patienceSeconds) => {
      const sanitize = SANITIZE_ARGUMENTS[technique];
      const kept = sanitize === undefined ? await format() : null;
      if (sanitize === undefined && kept === null)
        return { kind: "refused", detail: "The disk does not tell the format of its namespace." };
      const args =
        sanitize === undefined
          ? ["format", path, `--namespace-id=${namespaceId}`, ...formatArguments(technique, kept, patienceSeconds)]
          : ["sanitize", path, ...sanitize];
      const timeoutMs = sanitize === undefined ? (patienceSeconds + 60) * 1000 : ASK_TIMEOUT_MS;
      return judgeCommand("nvme", "nvme", await attempt("nvme", args, { timeoutMs }));
    },
  };
}
