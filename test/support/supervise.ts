import type { Child } from "./child.ts";

export interface Supervised {
  current(): Child;
  /** Kills the supervised process, and returns a function that restarts the process. */
  keepDown(): Promise<() => void>;
  stop(): Promise<void>;
}

/** Restarts a process half a second after the process ended by itself, as systemd does. */
export function supervise(start: () => Child, onRestart?: (name: string) => void): Supervised {
  let stopping = false;
  let mayStart = Promise.resolve();
  let child = start();
  const watch = (watched: Child): void => {
    void watched.gone.then(async () => {
      await mayStart;
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
    keepDown: async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      mayStart = promise;
      child.kill("SIGKILL");
      await child.gone;
      return resolve;
    },
    stop: async () => {
      stopping = true;
      await child.stop();
    },
  };
}
