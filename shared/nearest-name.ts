/** A name counts as mistyped if at most this share of its letters differs from a known name. */
const MOST_DIFFERENT = 0.25;

/** Returns the known name that a mistyped name most likely means, or null if no known name is near enough. */
export function nearest(name: string, known: readonly string[]): string | null {
  const [best] = known
    .map((one) => ({ one, edits: editsBetween(name, one) }))
    .filter(({ one, edits }) => edits <= Math.max(name.length, one.length) * MOST_DIFFERENT)
    .toSorted((a, b) => a.edits - b.edits);
  return best?.one ?? null;
}

/** The number of inserted, deleted and replaced letters that turn one name into the other (Levenshtein distance). */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
