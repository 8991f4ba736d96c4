import { z } from "zod";
import { CleaningEvidence, CleaningOutcome } from "../../../shared/tasks/cleaning-step.ts";
import { defineWork } from "../workers/define-work.ts";

/** How the work of one cleaning step ended. The handler of the task adds the step's name and target. */
export const StepEnd = z.strictObject({
  outcome: CleaningOutcome,
  message: z.string(),
  evidence: CleaningEvidence,
});
export type StepEnd = z.output<typeof StepEnd>;

/** Removes everything in a folder. Any signal ends the work, and its memory does not grow with the number of files. */
export const EMPTY_FOLDER = defineWork({
  kind: "storage.empty_folder",
  input: z.strictObject({
    path: z.string().startsWith("/"),
    use: z.enum(["temporary", "scratch"]),
    /** Whether a file system must be mounted at the path. A missing mount would hide the data that the step has to remove. */
    must_be_mount: z.boolean(),
  }),
  result: StepEnd,
  memoryMax: "512M",
  mayBlock: false,
});

/** Overwrites the free space of the file system of a folder with zeros. */
export const FILL_FREE_SPACE = defineWork({
  kind: "storage.fill_free_space",
  input: z.strictObject({ path: z.string().startsWith("/") }),
  result: StepEnd,
  memoryMax: "512M",
  mayBlock: false,
});

/** Unmounts the Weka file systems and removes the containers of the Weka client. An unmount may block in the kernel, where no signal ends it. */
export const LEAVE_WEKA = defineWork({
  kind: "storage.leave_weka",
  input: z.strictObject({}),
  result: StepEnd,
  memoryMax: "512M",
  mayBlock: true,
});

/** Removes the login tokens of Weka from the homes. */
export const REMOVE_WEKA_TOKENS = defineWork({
  kind: "storage.remove_weka_tokens",
  input: z.strictObject({}),
  result: StepEnd,
  memoryMax: "512M",
  mayBlock: false,
});
