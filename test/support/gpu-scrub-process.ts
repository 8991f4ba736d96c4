/**
 * A process that cleans the GPUs of a folder that stands for a host, and prints the reply of the task `node.gpu_scrub`. The arguments of the process
 * are the folder that stands for the host, and the task's id.
 */
import { scrubGpus } from "../../agent/gpu/scrub.ts";
import { SCRUB_TIMING } from "../../agent/gpu/scrub-timing.ts";
import { systemAt } from "../../agent/system/system.ts";
import { gpuScrub } from "../../shared/tasks/gpu-scrub.ts";
import { quietAgentLog } from "../fakes/hub/host-folder.ts";

const [root = "", taskId = ""] = process.argv.slice(2);
const order = { vendor: "nvidia", expected_gpus: 1, rungs: ["reset", "reload"], kill_holders: true, plan: false };
const run = { taskId, signal: new AbortController().signal, progress: () => undefined };
const reply = await scrubGpus(systemAt(root, quietAgentLog), gpuScrub.input.parse(order), run, SCRUB_TIMING);
process.stdout.write(`${JSON.stringify(reply)}\n`);
