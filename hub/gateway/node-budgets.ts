import type { NodeId } from "../../shared/ids.ts";
import { budgetsExceeded } from "../metrics/counted/budgets.ts";
import { ask, type Bucket, charge, isFull, LIMITS, NODE_RATES, type NodeKind, type Rate } from "./budgets.ts";

export interface NodeLimits {
  readonly rates: Readonly<Record<NodeKind, Rate>>;
  readonly noisyAfterMs: number;
  readonly calmAfterMs: number;
}
const IN_FORCE: NodeLimits = { rates: NODE_RATES, noisyAfterMs: LIMITS.noisyAfterMs, calmAfterMs: LIMITS.calmAfterMs };

interface Account {
  readonly buckets: Map<NodeKind, Bucket>;
  /** The time since which the node has been over a budget without a pause; null while the node keeps to all budgets. */
  overSince: number | null;
  /**
   * The time when the node was last over a budget. If the hub accepted a frame over the budget and made its sender wait, `overAt` is the end of this
   * wait.
   */
  overAt: number;
  /** The kind of the budget that the node last exceeded. */
  over: NodeKind | null;
  noisy: boolean;
  toldAt: number;
}

/** A node that has become noisy, which means over a budget for a long time, or a node that is no longer noisy. */
export interface NoiseChange {
  readonly nodeId: NodeId;
  readonly noisy: boolean;
  /** The kind of the budget that the node exceeded. */
  readonly kind: NodeKind;
}

/**
 * The interval at which `sweep` reports again a node that is still noisy, which means over its budgets, because otherwise the node's condition would
 * expire.
 */
const TELL_EVERY_MS = 600_000;
/** The longest time between two excesses of a budget for which the hub treats the node as over the budget without a pause. */
const PAUSE_MS = 5_000;

/** The budgets of the nodes whose agents are connected to this hub. */
export class NodeBudgets {
  readonly #limits: NodeLimits;
  readonly #accounts = new Map<NodeId, Account>();
  readonly #now: () => number;
  #changes: NoiseChange[] = [];

  constructor(limits: NodeLimits = IN_FORCE, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  get size(): number {
    return this.#accounts.size;
  }

  /** `ask` returns zero if the request is within the node's budget, otherwise the milliseconds until the budget allows the next request. */
  ask(nodeId: NodeId, kind: NodeKind): number {
    return this.#spend(nodeId, kind, "refused", ask);
  }

  /**
   * Charges a frame to the node's budget; the hub accepts the frame in any case. `charge` returns the number of milliseconds for which the hub must
   * not accept a further frame of the node.
   */
  charge(nodeId: NodeId, kind: NodeKind, cost = 1): number {
    return this.#spend(nodeId, kind, "delayed", (rate, bucket, now) => charge(rate, bucket, now, cost));
  }

  /** True if the node has been over a budget for so long that the hub must close its connection. */
  isNoisy(nodeId: NodeId): boolean {
    const account = this.#accounts.get(nodeId);
    const now = this.#now();
    return account !== undefined && now - account.overAt <= PAUSE_MS && this.#isLong(account, now);
  }

  /**
   * Returns which nodes have become noisy, which means over a budget for a long time, or are no longer noisy, since the last call of `sweep`. `sweep`
   * forgets the budgets of a node if all of them are full and the node is not noisy.
   */
  sweep(): NoiseChange[] {
    const now = this.#now();
    for (const [nodeId, account] of this.#accounts) {
      if (account.overSince !== null && now - account.overAt > PAUSE_MS) account.overSince = null;
      if (account.noisy && now - account.overAt >= this.#limits.calmAfterMs) this.#change(nodeId, account, false);
      else if (account.noisy && now - account.toldAt >= TELL_EVERY_MS) this.#change(nodeId, account, true);
      if (!account.noisy && account.overSince === null && this.#areFull(account, now)) this.#accounts.delete(nodeId);
    }
    const changes = this.#changes;
    this.#changes = [];
    return changes;
  }

  /**
   * Takes back the changes that the caller of `sweep` could not store, so that the next `sweep` again returns which nodes have become noisy or are no
   * longer noisy.
   */
  retell(changes: readonly NoiseChange[]): void {
    this.#changes = [...changes, ...this.#changes];
  }

  #spend(
    nodeId: NodeId,
    kind: NodeKind,
    over: "refused" | "delayed",
    spend: (rate: Rate, bucket: Bucket | undefined, now: number) => { bucket: Bucket; waitMs: number },
  ): number {
    const now = this.#now();
    const account = this.#accounts.get(nodeId) ?? newAccount();
    this.#accounts.set(nodeId, account);
    const { bucket, waitMs } = spend(this.#limits.rates[kind], account.buckets.get(kind), now);
    account.buckets.set(kind, bucket);
    if (waitMs === 0) return 0;
    budgetsExceeded.add({ of: "node", budget: kind });
    if (account.overSince === null || now - account.overAt > PAUSE_MS) account.overSince = now;
    account.overAt = over === "delayed" ? now + waitMs : now;
    account.over = kind;
    if (!account.noisy && this.#isLong(account, now)) this.#change(nodeId, account, true);
    return waitMs;
  }

  #isLong({ overSince }: Account, now: number): boolean {
    return overSince !== null && now - overSince >= this.#limits.noisyAfterMs;
  }

  #change(nodeId: NodeId, account: Account, noisy: boolean): void {
    account.noisy = noisy;
    account.toldAt = this.#now();
    if (account.over !== null) this.#changes.push({ nodeId, noisy, kind: account.over });
  }

  #areFull(account: Account, now: number): boolean {
    return [...account.buckets].every(([kind, bucket]) => isFull(this.#limits.rates[kind], bucket, now));
  }
}

const newAccount = (): Account => ({
  buckets: new Map(),
  overSince: null,
  overAt: 0,
  over: null,
  noisy: false,
  toldAt: 0,
});
