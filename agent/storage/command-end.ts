import { withoutCredentials } from "../../shared/without-credentials.ts";
import type { Attempt } from "../system/attempt.ts";

/**
 * What the agent knows about a disk command after the end of the tool that sent the command, for example `nvme`. `unknown` means that the disk may
 * have begun the command, for example because the tool hung or the kernel killed it.
 */
export type CommandEnd =
  | { readonly kind: "accepted" }
  | { readonly kind: "refused" | "unknown"; readonly detail: string };

const MOST_TOLD = 200;
const NVME_ERROR = /nvme status|failed|error/i;
const ATA_ERROR = /failed|error reason|not supported|missing sense/i;
/** The tool nvme-cli prints the NVMe status of a command in parentheses, for example `(0x2001)`. */
const NVME_STATUS = /nvme status.*\((?:0x)?([0-9a-f]{1,4})\)/i;
/** The texts that the tool hdparm prints if the disk itself refused a command. */
const ATA_REFUSAL = /error reason|not supported/i;

/**
 * The exit and the output of a tool show whether the disk accepted the tool's command. Only an error status of the disk itself proves that the disk
 * refused the command.
 */
export function judgeCommand(bus: "nvme" | "ata", tool: string, end: Attempt): CommandEnd {
  if (end.kind === "missing") return { kind: "refused", detail: end.message };
  if (end.kind === "hung") return { kind: "unknown", detail: `${tool} hangs (state ${end.state}).` };
  const told = `${end.stderr} ${end.stdout}`.trim();
  const detail = withoutCredentials(told).slice(0, MOST_TOLD) || `${tool} ended with status ${end.exitCode}.`;
  // Older versions of nvme-cli end with status 0 although the disk refused the command.
  if (end.exitCode === 0 && !(bus === "nvme" ? NVME_ERROR : ATA_ERROR).test(told)) return { kind: "accepted" };
  const isRefusal = bus === "nvme" ? isNvmeRefusal(NVME_STATUS.exec(told)?.[1]) : ATA_REFUSAL.test(told);
  return { kind: isRefusal ? "refused" : "unknown", detail };
}

/**
 * With some statuses, an NVMe controller refuses a command before the command begins (NVM Express Base Specification). A generic NVMe status from
 * 0x04 to 0x0a means that the disk aborted a command. An NVMe status of type 2 or higher concerns media, paths or the vendor, so the disk may have
 * begun the command.
 */
function isNvmeRefusal(code: string | undefined): boolean {
  if (code === undefined) return false;
  const status = Number.parseInt(code, 16) & 0x7ff;
  if (status === 0 || status >= 0x200) return false;
  return status < 0x04 || status > 0x0a;
}
