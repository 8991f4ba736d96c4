/** Prints the names of the long tests that run for this commit, one on each line, so that .ci/run knows its own part of them. */
import { chosenHere } from "./rotation.ts";

const { because, run } = chosenHere();
process.stderr.write(`Long tests: ${because}\n`);
process.stdout.write(`${run.join("\n")}\n`);
