import { type Performer, performer } from "../workers/define-work.ts";
import { emptyFolderStep } from "./empty-folder-step.ts";
import { fillFreeSpaceStep } from "./free-space.ts";
import { leaveWeka } from "./leave-weka.ts";
import { purgeAndRestore } from "./purge-and-restore.ts";
import { sampleDisk } from "./sample-disk.ts";
import { removeWekaTokens } from "./weka-tokens.ts";
import { EMPTY_FOLDER, FILL_FREE_SPACE, LEAVE_WEKA, PURGE_DISK, REMOVE_WEKA_TOKENS, SAMPLE_DISK } from "./works.ts";

/** The functions that perform the steps of a storage cleanup, which only a worker process loads. */
export const STORAGE_PERFORMERS: readonly Performer[] = [
  performer(EMPTY_FOLDER, (input, run) => emptyFolderStep(input, run, "working_folder")),
  performer(FILL_FREE_SPACE, ({ path }, run) => fillFreeSpaceStep(path, run)),
  performer(LEAVE_WEKA, (_input, run) => leaveWeka(run)),
  performer(PURGE_DISK, (input, run) => purgeAndRestore(input, run)),
  performer(SAMPLE_DISK, async (input, run) => sampleDisk(input, run)),
  performer(REMOVE_WEKA_TOKENS, async (_input, run) => removeWekaTokens(run.root)),
];
