import { DriverError, GpuFaultError } from "../../gpu-memory/faults.ts";
import { kernelsHip } from "../../gpu-memory/hip-kernels.ts";
import { HIP_OUT_OF_MEMORY } from "../../gpu-memory/hip-results.ts";
import { KERNEL_NAMES, type KernelKind, THREADS_PER_GROUP } from "../../gpu-memory/kernel-calls.ts";
import type { DriverPort } from "./driver-port.ts";
import { type Hip, type Hiprtc, openHiprtc } from "./hip-library.ts";

const ON_DEFAULT_STREAM = 0n;
const MOST_TEXT = 200;

export interface HipCompiler {
  readonly path: string;
  readonly arch: string;
}

export const hipPort = (hip: Hip, compiler: HipCompiler): DriverPort => ({
  allocate: (bytes) => {
    const out = Buffer.alloc(8);
    return hip.call("hipMalloc", [out, bytes], [HIP_OUT_OF_MEMORY]) === 0 ? out.readBigUInt64LE() : null;
  },
  take: (bytes) => hip.get("hipMalloc", bytes),
  free: (address) => void hip.call("hipFree", [address]),
  set: (address, bytes, word) => {
    // HIP takes a 32-bit word as a signed number.
    hip.call("hipMemsetD32", [address, word | 0, bytes / 4]);
    hip.call("hipDeviceSynchronize", []);
  },
  read: (address, bytes) => {
    const to = Buffer.alloc(bytes);
    hip.call("hipMemcpyDtoH", [to, address, bytes]);
    return to;
  },
  write: (address, from) => void hip.call("hipMemcpyHtoD", [address, from, from.length]),
  loadKernels: () => {
    const module = hip.get("hipModuleLoadData", compiled(compiler));
    const kernel = (kind: KernelKind) => hip.get("hipModuleGetFunction", module, KERNEL_NAMES[kind]);
    const kernels = { fill: kernel("fill"), check: kernel("check"), scan: kernel("scan") };
    return (kind, groups, parameters) => {
      const size = [groups, 1, 1, THREADS_PER_GROUP, 1, 1] as const;
      hip.call("hipModuleLaunchKernel", [kernels[kind], ...size, 0, ON_DEFAULT_STREAM, parameters, null]);
      hip.call("hipDeviceSynchronize", []);
    };
  },
});

/**
 * Without the option `--offload-arch`, the compiler library would load another library, which it would search in the loader's path. If AMD's compiler
 * refuses the GPU kernels, the error contains the compiler's message.
 */
function compiled({ path, arch }: HipCompiler): Buffer {
  const hiprtc = openCompiler(path);
  const program = hiprtc.get("hiprtcCreateProgram", kernelsHip(), "muster.hip", 0, null, null);
  try {
    hiprtc.call("hiprtcCompileProgram", [program, 1, [Buffer.from(`--offload-arch=${arch}\0`)]]);
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    const log = Buffer.alloc(sizeOf(hiprtc, "hiprtcGetProgramLogSize", program) + 1);
    hiprtc.call("hiprtcGetProgramLog", [program, log]);
    const said = log.toString("latin1").split("\0", 1)[0]?.trim().slice(0, MOST_TEXT);
    throw new DriverError(error.call, error.result, error.fault, said);
  }
  const code = Buffer.alloc(sizeOf(hiprtc, "hiprtcGetCodeSize", program));
  hiprtc.call("hiprtcGetCode", [program, code]);
  return code;
}

function sizeOf(hiprtc: Hiprtc, call: "hiprtcGetProgramLogSize" | "hiprtcGetCodeSize", program: bigint): number {
  const bytes = Buffer.alloc(8);
  hiprtc.call(call, [program, bytes]);
  return Number(bytes.readBigUInt64LE());
}

/** A host without the compiler library overwrites its GPUs by copies, so a missing compiler is no fault of the GPU. */
function openCompiler(path: string): Hiprtc {
  try {
    return openHiprtc(path);
  } catch (error) {
    if (!(error instanceof GpuFaultError)) throw error;
    throw new DriverError("hiprtcCreateProgram", -1, "kernels_refused", error.message.slice(0, MOST_TEXT));
  }
}
