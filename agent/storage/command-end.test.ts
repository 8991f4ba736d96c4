import { expect, it } from "vitest";
import { judgeCommand } from "./command-end.ts";

const ended = (exitCode: number, stderr: string, stdout = "") => ({ kind: "ended" as const, exitCode, stdout, stderr });

it.each([
  ["nvme", ended(0, "", "Success formatting namespace:1"), "accepted"],
  ["nvme", ended(1, "NVMe status: INVALID_OPCODE: the command opcode field is not valid(0x2001)"), "refused"],
  ["nvme", ended(0, "NVMe status: INVALID_OPCODE: the command opcode field is not valid(0x2001)"), "refused"],
  ["nvme", ended(1, "NVMe Status:INVALID_FORMAT(410a)"), "refused"],
  ["nvme", ended(1, "NVMe status: Sanitize In Progress: it is prohibited(0x1d)"), "refused"],
  ["nvme", ended(1, "NVMe status: Data Transfer Error: transferring the data(0x4)"), "unknown"],
  ["nvme", ended(1, "NVMe status: Command Abort Requested: the command was aborted(0x7)"), "unknown"],
  ["nvme", ended(1, "NVMe status: Command Aborted due to Failed Fused Command(0xa)"), "unknown"],
  ["nvme", ended(1, "NVMe status: Host Aborted Command: the host aborted the command(0x371)"), "unknown"],
  ["nvme", ended(1, "NVMe status: Write Fault: the data could not be committed(0x280)"), "unknown"],
  ["nvme", ended(1, "NVMe status: an unknown status"), "unknown"],
  ["nvme", ended(0, "an error without a status"), "unknown"],
  ["nvme", ended(4, "format: Interrupted system call"), "unknown"],
  ["nvme", ended(128, "The tool was ended by SIGKILL. "), "unknown"],
  ["ata", ended(0, "", "Operation started in background"), "accepted"],
  ["ata", ended(5, "SANITIZE device error reason: Sanitize Command Unsuccessful"), "refused"],
  ["ata", ended(0, "SG_IO: bad/missing sense data, sb[]: 70 00"), "unknown"],
  ["ata", ended(5, "SANITIZE_BLOCK_ERASE failed: Input/output error"), "unknown"],
  ["nvme", { kind: "missing" as const, message: "not installed" }, "refused"],
  ["nvme", { kind: "hung" as const, pid: 7, state: "D", wchan: "", isAlive: true }, "unknown"],
] as const)("%s %j is %s", (bus, end, kind) => {
  expect(judgeCommand(bus, bus, end)).toMatchObject({ kind });
});

it.each(["nvme", "ata"] as const)("leaves a secret that the tool of %s printed out of the detail", (bus) => {
  const end = ended(1, "failed: busy", `${".".repeat(160)} AUTH_TOKEN=hunter2`);
  expect(judgeCommand(bus, bus, end)).toEqual({
    kind: "unknown",
    detail: `failed: busy ${".".repeat(160)} AUTH_TOKEN=[redacted]`,
  });
});
