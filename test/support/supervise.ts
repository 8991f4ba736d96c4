import type { Child } from "./child.ts";

export interface Supervised {
  current(): Child;
  stop(): Promise<void>;
}

/** As systemd would: starts again whatever ends by itself, half a second later; `stop` ends that. */
export function supervise(start: () => Child, onRestart?: (name: string) => void): Supervised {
  let stopping = false;
  let child = start();
  const watch = (watched: Child): void => {
    void watched.gone.then(() => {
      if (stopping) return;
      onRestart?.(watched.name);
      setTimeout(() => {
        if (stopping) return;
        child = start();
        watch(child);
      }, 500);
    });
  };
  watch(child);
  return {
    current: () => child,
    stop: async () => {
      stopping = true;
      await child.stop();
    },
  };
}
