import koffi from "koffi";
import type { GpuFault } from "../../../shared/gpu-faults.ts";
import { DriverError, GpuFaultError } from "../../gpu-memory/faults.ts";
import { messageOf } from "../../message-of.ts";

export type Value = number | bigint | string | Buffer | null | readonly (Buffer | bigint)[];
export type Loaded<C extends string> = Readonly<Record<C, (...args: readonly Value[]) => number>>;

export interface DriverCalls<C extends string> {
  /** Calls the GPU's driver, and throws `DriverError` for a result other than 0 and those in `allowed`. */
  call(name: C, args: readonly Value[], allowed?: readonly number[]): number;
  get(name: C, ...args: readonly Value[]): bigint;
}

/**
 * Turns the calls of a driver library into calls that throw `DriverError`. The function `faultOf` returns the GPU fault that an error number of the
 * driver library means.
 */
export function driverCalls<C extends string>(calls: Loaded<C>, faultOf: (result: number) => GpuFault): DriverCalls<C> {
  const call: DriverCalls<C>["call"] = (name, args, allowed = []) => {
    const result = calls[name](...args);
    if (result !== 0 && !allowed.includes(result)) throw new DriverError(name, result, faultOf(result));
    return result;
  };
  return {
    call,
    get: (name, ...args) => {
      const out = Buffer.alloc(8);
      call(name, [out, ...args]);
      return out.readBigUInt64LE();
    },
  };
}

export function loadLibrary<C extends string>(path: string, prototypes: Readonly<Record<C, string>>): Loaded<C> {
  let library: ReturnType<typeof koffi.load>;
  try {
    library = koffi.load(path);
  } catch (error) {
    throw new GpuFaultError("driver_missing", `The library ${path} cannot be loaded (${messageOf(error)}).`);
  }
  // `loadLibrary` looks up each driver call by itself, so that an error names the call that an old driver lacks.
  const find = (name: C) => {
    try {
      return library.func(prototypes[name]);
    } catch (error) {
      throw new GpuFaultError("driver_too_old", `The library ${path} has no ${name} (${messageOf(error)}).`);
    }
  };
  return Object.fromEntries(Object.keys(prototypes).map((name) => [name, find(name as C)])) as unknown as Loaded<C>;
}
