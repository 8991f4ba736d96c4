type Item = Readonly<Record<string, unknown>>;

/** The state of an object as one line: its status, its stage, what it waits for, and what a person has to do. */
export function stateOf(item: Item): string {
  const parts = [
    item["status"] ?? item["state"] ?? (item["done"] === true ? "done" : "running"),
    "succeeded" in item ? `${item["succeeded"]} of ${item["total"]} succeeded, ${item["failed"]} failed` : null,
    item["current_stage"],
    item["waiting_for"],
    item["error_message"],
    item["next_action"],
  ];
  return parts.filter((part) => part !== null && part !== undefined && part !== "").join(", ");
}
