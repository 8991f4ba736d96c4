import type { Onboarding } from "../../shared/api/onboardings.ts";
import { ONBOARDING_STAGES } from "../../shared/workflow-status.ts";

const stageNumber = (stage: Onboarding["current_stage"]): number => ONBOARDING_STAGES.indexOf(stage) + 1;

/** Returns one line about an onboarding: its stage, its attempt, and what the onboarding waits for. */
function describe(onboarding: Onboarding): string {
  const done = onboarding.status === "completed" || onboarding.status === "reconciled";
  const place = done ? ONBOARDING_STAGES.length : stageNumber(onboarding.current_stage);
  const bar = `${"#".repeat(place)}${".".repeat(ONBOARDING_STAGES.length - place)}`;
  return `${onboarding.hostname.padEnd(8)} [${bar}] ${String(place).padStart(2)}/${ONBOARDING_STAGES.length} ${describeState(onboarding, done)}`;
}

function describeState(onboarding: Onboarding, done: boolean): string {
  if (done) return "active";
  if (onboarding.failure_class !== null && onboarding.status.startsWith("failed")) {
    return `${onboarding.status}: ${onboarding.failure_class}/${onboarding.error_code}: ${onboarding.error_message} Next: ${onboarding.next_action}`;
  }
  if (onboarding.status === "pending") return "pending: waits for a free place at its site";
  const attempt = onboarding.current_attempt > 1 ? ` (attempt ${onboarding.current_attempt})` : "";
  const waits = onboarding.waiting_for === null ? "" : `: ${onboarding.waiting_for}`;
  return `${onboarding.current_stage}${attempt}${waits}`;
}

/**
 * On a terminal, `ProgressView` rewrites the lines of all hosts in place. If the output is no terminal, `ProgressView` prints a host's line only when
 * it has changed.
 */
export class ProgressView {
  readonly #out: NodeJS.WriteStream;
  #shown: string[] = [];
  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  show(onboardings: readonly Onboarding[]): void {
    const lines = [...onboardings].sort((a, b) => (a.hostname < b.hostname ? -1 : 1)).map(describe);
    if (this.#out.isTTY) this.#rewrite(lines);
    else for (const line of lines) if (!this.#shown.includes(line)) this.#out.write(`${line}\n`);
    this.#shown = lines;
  }

  #rewrite(lines: readonly string[]): void {
    const width = this.#out.columns || 120;
    const up = this.#shown.length > 0 ? `\u001b[${this.#shown.length}A` : "";
    this.#out.write(up + lines.map((line) => `\u001b[2K${line.slice(0, width - 1)}\n`).join(""));
  }
}
