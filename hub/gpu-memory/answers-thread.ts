/** The thread that checks the answers of hosts about their GPU memory, so that the hub's event loop does not wait for the computation. */
import { parentPort } from "node:worker_threads";
import { type AnswersToCheck, type CheckedAnswers, checkAnswers } from "./expected-answers.ts";

export interface Question {
  readonly number: number;
  readonly check: AnswersToCheck;
}
export type Reply = { readonly number: number } & (
  | { readonly checked: CheckedAnswers[] }
  | { readonly failure: string }
);

parentPort?.on("message", ({ number, check }: Question) => {
  const reply = (said: Reply) => parentPort?.postMessage(said);
  try {
    reply({ number, checked: checkAnswers(check) });
  } catch (error) {
    reply({ number, failure: error instanceof Error ? error.message : String(error) });
  }
});
