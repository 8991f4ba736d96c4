import { IDENTIFY_BYTES, SANITIZE_LOG_BYTES } from "./nvme-facts.ts";

export interface IdentifyFields {
  readonly serial?: string;
  readonly model?: string;
  readonly firmware?: string;
  readonly oacs?: number;
  readonly sanicap?: number;
  readonly fna?: number;
  readonly cmic?: number;
  readonly capacity?: number;
  readonly unallocated?: number;
}

export function identifyBytes({ serial = "S1", model = "M", firmware = "F", ...more }: IdentifyFields = {}): Buffer {
  const bytes = Buffer.alloc(IDENTIFY_BYTES);
  bytes.write(serial.padEnd(20), 4, "latin1");
  bytes.write(model.padEnd(40), 24, "latin1");
  bytes.write(firmware.padEnd(8), 64, "latin1");
  bytes.writeUInt16LE(more.oacs ?? 0, 256);
  bytes.writeUInt32LE(more.sanicap ?? 0, 328);
  bytes.writeUInt8(more.fna ?? 0, 524);
  bytes.writeUInt8(more.cmic ?? 0, 76);
  bytes.writeBigUInt64LE(BigInt(more.capacity ?? 0), 280);
  bytes.writeBigUInt64LE(BigInt(more.unallocated ?? 0), 296);
  return bytes;
}

export function namespaceBytes(flbas: number, dps: number): Buffer {
  const bytes = Buffer.alloc(IDENTIFY_BYTES);
  bytes.writeBigUInt64LE(1_000n, 0);
  bytes.writeUInt8(flbas, 26);
  bytes.writeUInt8(dps, 29);
  return bytes;
}

export function controllerBytes(controllers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(IDENTIFY_BYTES);
  for (const [index, value] of [controllers.length, ...controllers].entries()) bytes.writeUInt16LE(value, 2 * index);
  return bytes;
}

export function sanitizeLogBytes(progress: number, status: number, command: number, estimates: number[] = []): Buffer {
  const bytes = Buffer.alloc(SANITIZE_LOG_BYTES);
  bytes.writeUInt16LE(progress, 0);
  bytes.writeUInt16LE(status, 2);
  bytes.writeUInt32LE(command, 4);
  for (const [index, estimate] of estimates.entries()) bytes.writeUInt32LE(estimate, 8 + 4 * index);
  return bytes;
}
