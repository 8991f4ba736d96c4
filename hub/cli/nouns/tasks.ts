import { age, col, type Noun, wide } from "./noun.ts";

export const TASKS = {
  plural: "tasks",
  singular: "task",
  short: ["ta"],
  about: "tasks of a node's agent",
  lists: ["listNodeTasks"],
  reads: ["getTask"],
  parent: { flag: "node", list: null },
  id: "id",
  label: "id",
  columns: [
    col("TYPE", "type"),
    col("PLAN", "plan"),
    col("STATE", "state"),
    col("ATTEMPTS", "attempts"),
    age("AGE", "created_at"),
    col("ERROR", "error_code"),
    col("MESSAGE", "error_message"),
    wide("FINISHED", "finished_at"),
    wide("EPOCH", "epoch"),
    wide("ID", "id"),
  ],
  events: [],
} as const satisfies Noun;
