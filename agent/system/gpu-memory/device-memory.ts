import type { DriverPort } from "./driver-port.ts";

export class DeviceMemory {
  readonly #port: DriverPort;
  constructor(port: DriverPort) {
    this.#port = port;
  }
  allocate(bytes: number): bigint | null {
    return this.#port.allocate(bytes);
  }
  free(address: bigint): void {
    this.#port.free(address);
  }
  set(address: bigint, bytes: number, word: number): void {
    this.#port.set(address, bytes, word);
  }
  read(address: bigint, bytes: number): Buffer {
    return this.#port.read(address, bytes);
  }
  protected write(address: bigint, from: Buffer): void {
    this.#port.write(address, from);
  }
}
