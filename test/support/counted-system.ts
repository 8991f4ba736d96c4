import type { System } from "../../agent/system/system.ts";

/** The operations of `System` that change the host. */
const CHANGES = [
  ...(["run", "attempt", "write", "remove", "removeTree", "rename", "makeHome"] as const),
  ...(["writeOwned", "removeConfined"] as const),
];

/**
 * Returns the host's `System`, which calls `before` with the number of the change, counted from 1, before each call that changes the host. The host's
 * `System` makes the change when the promise of `before` has resolved.
 */
export function countedSystem(system: System, before: (change: number) => Promise<void>): System {
  let changes = 0;
  const counted = Object.fromEntries(
    CHANGES.map((name) => {
      const change = system[name] as (...args: readonly unknown[]) => Promise<unknown>;
      return [
        name,
        async (...args: readonly unknown[]) => {
          changes += 1;
          await before(changes);
          return change(...args);
        },
      ];
    }),
  );
  return { ...system, ...counted };
}
