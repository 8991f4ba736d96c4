/**
 * Runs PTX kernels on the CPU, from the same PTX text that the agent gives to NVIDIA's driver. The PTX interpreter knows only the instructions of the
 * agent's PTX kernels. The PTX interpreter refuses an unknown instruction, an undeclared register, and an address outside the memory that the test
 * gives.
 */
export interface Memory {
  readonly address: bigint;
  readonly bytes: Buffer;
}
export interface Launch {
  readonly kernel: string;
  readonly groups: number;
  readonly threads: number;
  /** The values of a PTX kernel's parameters by name. */
  readonly parameters: Readonly<Record<string, number | bigint>>;
  readonly memory: readonly Memory[];
}

interface Thread {
  readonly group: number;
  readonly lane: number;
  readonly width: number;
  readonly words: Map<string, number>;
  readonly longs: Map<string, bigint>;
  readonly predicates: Map<string, boolean>;
  at: number;
}
type Step = (thread: Thread) => void;

interface Kernel {
  readonly parameters: ReadonlyMap<string, "u32" | "u64">;
  readonly registers: ReadonlySet<string>;
  readonly labels: ReadonlyMap<string, number>;
  readonly lines: readonly string[];
}

const END = Number.MAX_SAFE_INTEGER;
const U64 = (1n << 64n) - 1n;

export function runKernel(ptx: string, launch: Launch): void {
  const kernel = parse(ptx, launch.kernel);
  const given = Object.keys(launch.parameters).sort();
  const wanted = [...kernel.parameters.keys()].sort();
  if (given.join() !== wanted.join()) throw new Error(`${launch.kernel} takes ${wanted.join()}, not ${given.join()}`);
  const steps = kernel.lines.map((line) => compile(line, kernel, launch));
  for (let group = 0; group < launch.groups; group += 1)
    for (let lane = 0; lane < launch.threads; lane += 1) {
      const thread: Thread = {
        group,
        lane,
        width: launch.threads,
        words: new Map(),
        longs: new Map(),
        predicates: new Map(),
        at: 0,
      };
      while (thread.at < steps.length) {
        const step = steps[thread.at] as Step;
        thread.at += 1;
        step(thread);
      }
      if (thread.at !== END) throw new Error(`${launch.kernel} runs beyond its last instruction`);
    }
}

function parse(ptx: string, name: string): Kernel {
  const found = new RegExp(`[.]visible [.]entry ${name}\\(([^)]*)\\)\\s*\\{([^]*?)\\n\\}`).exec(ptx);
  if (found === null) throw new Error(`the text has no kernel ${name}`);
  const [, head = "", body = ""] = found;
  const parameters = new Map(
    [...head.matchAll(/[.]param [.](u32|u64) (\w+)/g)].map(([, type, one]) => [one as string, type as "u32" | "u64"]),
  );
  const registers = new Set<string>();
  const labels = new Map<string, number>();
  const lines: string[] = [];
  for (const line of body.split("\n").map((one) => one.trim())) {
    if (line === "") continue;
    const label = /^(\w+):$/.exec(line)?.[1];
    if (label !== undefined) labels.set(label, lines.length);
    else if (line.startsWith(".reg ")) for (const register of declared(line)) registers.add(register);
    else lines.push(line.replace(/;$/, ""));
  }
  return { parameters, registers, labels, lines };
}

/** In PTX, `.reg .b32 %s<2>, %one;` declares the registers %s0, %s1 and %one. */
const declared = (line: string): string[] =>
  [...line.matchAll(/%(\w+?)(?:<(\d+)>)?[,;]/g)].flatMap(([, name, count]) =>
    count === undefined ? [`%${name}`] : Array.from({ length: Number(count) }, (_, index) => `%${name}${index}`),
  );

/** Compiles a line of PTX into a function, so that the interpreter does not parse the line for each thread. */
function compile(line: string, kernel: Kernel, launch: Launch): Step {
  const guard = /^@(%\w+) (.*)$/.exec(line);
  if (guard !== null) {
    const [, predicate = "", rest = ""] = guard;
    const step = compile(rest, kernel, launch);
    return (thread) => {
      if (read(thread.predicates, predicate)) step(thread);
    };
  }
  const [operation = "", ...rest] = line.split(" ");
  const operands = operandsOf(rest.join(" "));
  for (const register of rest.join(" ").match(/%\w+/g) ?? [])
    if (!kernel.registers.has(register) && !/^%(ctaid|ntid|tid)$/.test(register))
      throw new Error(`register ${register} is not declared: ${line}`);
  const make = INSTRUCTIONS[operation];
  if (make === undefined) throw new Error(`unknown instruction: ${line}`);
  return make(operands, kernel, launch);
}

const operandsOf = (text: string): string[] =>
  text
    .match(/\{[^}]*\}|[^,{}]+/g)
    ?.map((one) => one.trim())
    .filter(Boolean) ?? [];

function read<T>(from: ReadonlyMap<string, T>, register: string): T {
  const value = from.get(register);
  if (value === undefined) throw new Error(`${register} is read before it is written, or has another type`);
  return value;
}

type Operand<T> = (thread: Thread) => T;
const word = (text = ""): Operand<number> => {
  if (text === "%ctaid.x") return (thread) => thread.group;
  if (text === "%ntid.x") return (thread) => thread.width;
  if (text === "%tid.x") return (thread) => thread.lane;
  if (text.startsWith("%")) return (thread) => read(thread.words, text);
  const value = Number(text);
  if (!Number.isInteger(value)) throw new Error(`no operand: ${text}`);
  return () => value >>> 0;
};
const long = (text = ""): Operand<bigint> => {
  if (text.startsWith("%")) return (thread) => read(thread.longs, text);
  const value = BigInt(text);
  return () => value;
};
const address = (text = ""): Operand<bigint> => {
  const [, register = "", offset = "0"] = /^\[(%\w+)(?:\+(\d+))?\]$/.exec(text) ?? [];
  const distance = BigInt(offset);
  return (thread) => read(thread.longs, register) + distance;
};
const four = (text = ""): readonly string[] => {
  const registers = text.match(/%\w+/g) ?? [];
  if (registers.length !== 4) throw new Error(`not four registers: ${text}`);
  return registers;
};

function place(
  memory: readonly Memory[],
  at: bigint,
  length: number,
): { readonly bytes: Buffer; readonly index: number } {
  if (at % BigInt(length) !== 0n) throw new Error(`address ${at} is not aligned to ${length} bytes`);
  for (const { address, bytes } of memory) {
    const index = Number(at - address);
    if (index >= 0 && index + length <= bytes.length) return { bytes, index };
  }
  throw new Error(`address ${at} is outside of the memory`);
}

type Maker = (operands: readonly string[], kernel: Kernel, launch: Launch) => Step;

const ofWords =
  (compute: (...values: number[]) => number): Maker =>
  ([to = "", ...from]) => {
    const operands = from.map(word);
    return (thread) => void thread.words.set(to, compute(...operands.map((one) => one(thread))) >>> 0);
  };
const ofLongs =
  (compute: (...values: bigint[]) => bigint): Maker =>
  ([to = "", ...from]) => {
    const operands = from.map(long);
    return (thread) => void thread.longs.set(to, compute(...operands.map((one) => one(thread))) & U64);
  };
const compareWords =
  (compute: (a: number, b: number) => boolean): Maker =>
  ([to = "", a, b]) => {
    const [left, right] = [word(a), word(b)];
    return (thread) => void thread.predicates.set(to, compute(left(thread), right(thread)));
  };
const atomic =
  (combine: (old: bigint, value: bigint) => bigint): Maker =>
  ([to, from], _kernel, { memory }) => {
    const [at, value] = [address(to), long(from)];
    return (thread) => {
      const { bytes, index } = place(memory, at(thread), 8);
      bytes.writeBigUInt64LE(combine(bytes.readBigUInt64LE(index), value(thread)) & U64, index);
    };
  };

const INSTRUCTIONS: Readonly<Record<string, Maker>> = {
  "mov.u32": ofWords((a = 0) => a),
  "add.u32": ofWords((a = 0, b = 0) => a + b),
  "sub.u32": ofWords((a = 0, b = 0) => a - b),
  "xor.b32": ofWords((a = 0, b = 0) => a ^ b),
  "or.b32": ofWords((a = 0, b = 0) => a | b),
  "mad.lo.u32": ofWords((a = 0, b = 0, c = 0) => Math.imul(a, b) + c),
  // The funnel shift of PTX rotates a word when both words of the instruction's source are the same word.
  "shf.l.wrap.b32": ofWords((low = 0, high = 0, by = 0) =>
    by % 32 === 0 ? high : (high << (by % 32)) | (low >>> (32 - (by % 32))),
  ),
  "mov.u64": ofLongs((a = 0n) => a),
  "add.u64": ofLongs((a = 0n, b = 0n) => a + b),
  "cvta.to.global.u64": ofLongs((a = 0n) => a),
  "cvt.u64.u32": ([to = "", from]) => {
    const value = word(from);
    return (thread) => void thread.longs.set(to, BigInt(value(thread)));
  },
  "mul.wide.u32": ([to = "", a, b]) => {
    const [left, right] = [word(a), word(b)];
    return (thread) => void thread.longs.set(to, BigInt(left(thread)) * BigInt(right(thread)));
  },
  "setp.eq.u32": compareWords((a, b) => a === b),
  "setp.ne.u32": compareWords((a, b) => a !== b),
  "setp.ge.u32": compareWords((a, b) => a >= b),
  "selp.u32": ([to = "", yes, no, predicate = ""]) => {
    const [ifTrue, ifFalse] = [word(yes), word(no)];
    return (thread) => void thread.words.set(to, (read(thread.predicates, predicate) ? ifTrue : ifFalse)(thread));
  },
  "ld.param.u32": parameter("u32"),
  "ld.param.u64": parameter("u64"),
  "ld.global.v4.u32": ([to, from], _kernel, { memory }) => {
    const [registers, at] = [four(to), address(from)];
    return (thread) => {
      const { bytes, index } = place(memory, at(thread), 16);
      for (const [number, register] of registers.entries())
        thread.words.set(register, bytes.readUInt32LE(index + number * 4));
    };
  },
  "st.global.v4.u32": ([to, from], _kernel, { memory }) => {
    const [at, registers] = [address(to), four(from)];
    return (thread) => {
      const { bytes, index } = place(memory, at(thread), 16);
      for (const [number, register] of registers.entries())
        bytes.writeUInt32LE(read(thread.words, register), index + number * 4);
    };
  },
  "red.global.add.u64": atomic((old, value) => old + value),
  "red.global.min.u64": atomic((old, value) => [old, value].sort((a, b) => (a < b ? -1 : 1))[0] ?? old),
  bra: ([label = ""], kernel) => {
    const target = kernel.labels.get(label);
    if (target === undefined) throw new Error(`no label ${label}`);
    return (thread) => {
      thread.at = target;
    };
  },
  ret: () => (thread) => {
    thread.at = END;
  },
};

function parameter(type: "u32" | "u64"): Maker {
  return ([to = "", from = ""], kernel, launch) => {
    const name = from.slice(1, -1);
    if (kernel.parameters.get(name) !== type) throw new Error(`the kernel has no parameter ${name} of type ${type}`);
    const value = launch.parameters[name] ?? 0;
    return type === "u32"
      ? (thread) => void thread.words.set(to, Number(value) >>> 0)
      : (thread) => void thread.longs.set(to, BigInt(value));
  };
}
