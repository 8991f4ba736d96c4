/** Prints each long test on a line, after `run` if it runs for this commit and else after `left-out`, so that .ci/run knows its own part of them. */
import { chosenHere } from "./rotation.ts";

const { because, run, leftOut } = chosenHere();
process.stderr.write(`Long tests: ${because}\n`);
for (const name of run) process.stdout.write(`run ${name}\n`);
for (const name of leftOut) process.stdout.write(`left-out ${name}\n`);
