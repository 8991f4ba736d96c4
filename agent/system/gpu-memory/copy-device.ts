import { STREAM_BLOCK_BYTES } from "../../../shared/gpu-memory.ts";
import type { GpuDevice } from "../../gpu-memory/device.ts";
import { countUnits, differingBlocks, streamFrom } from "../../gpu-memory/host-compare.ts";
import { DeviceMemory } from "./device-memory.ts";
import type { DriverPort } from "./driver-port.ts";

const PIECE_BYTES = 16 * 2 ** 20;
const ZEROS = Buffer.alloc(PIECE_BYTES);

/** A GPU whose memory the host's processor fills and compares by copies. */
export class CopyDevice extends DeviceMemory implements GpuDevice {
  readonly sliceBytes = 64 * 2 ** 20;
  readonly #key: Buffer;
  constructor(port: DriverPort, seed: string) {
    super(port);
    this.#key = Buffer.from(seed, "hex");
  }

  fill(address: bigint, bytes: number, nonce: Uint8Array, counter: number): void {
    const stream = streamFrom(this.#key, nonce, counter);
    for (const { at, length } of piecesOf(bytes))
      this.write(address + BigInt(at), stream.update(ZEROS.subarray(0, length)));
  }

  check(address: bigint, bytes: number, nonce: Uint8Array, counter: number) {
    const stream = streamFrom(this.#key, nonce, counter);
    let blocks = 0;
    let first: number | null = null;
    for (const { at, length } of piecesOf(bytes)) {
      const differing = differingBlocks(
        stream.update(ZEROS.subarray(0, length)),
        this.read(address + BigInt(at), length),
      );
      blocks += differing.blocks;
      if (differing.first !== null) first ??= at + differing.first * STREAM_BLOCK_BYTES;
    }
    return { blocks, first: first as number | null };
  }

  scan(address: bigint, bytes: number, marker: number) {
    const found = { nonzero: 0, marked: 0 };
    for (const { at, length } of piecesOf(bytes)) {
      const { nonzero, marked } = countUnits(this.read(address + BigInt(at), length), marker);
      found.nonzero += nonzero;
      found.marked += marked;
    }
    return found;
  }
}

function* piecesOf(bytes: number): Generator<{ readonly at: number; readonly length: number }> {
  for (let at = 0; at < bytes; at += PIECE_BYTES) yield { at, length: Math.min(PIECE_BYTES, bytes - at) };
}
