import { useSyncExternalStore } from "react";

/**
 * Whether shortcuts of single characters work. A person who dictates or has a tremor can switch the single-character shortcuts off, and the browser
 * remembers that setting.
 */
const STORED = "muster-console-shortcuts";
const listeners = new Set<() => void>();
const tell = (): void => {
  for (const one of listeners) one();
};

export const areOn = (): boolean => localStorage.getItem(STORED) !== "off";
export function switchTo(on: boolean): void {
  if (on) localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, "off");
  tell();
}

let listShown = false;
export const showShortcuts = (): void => setShown(true);
export const hideShortcuts = (): void => setShown(false);
function setShown(shown: boolean): void {
  listShown = shown;
  tell();
}

const subscribe = (one: () => void): (() => void) => {
  listeners.add(one);
  return () => listeners.delete(one);
};
export const useShortcutsOn = (): boolean => useSyncExternalStore(subscribe, areOn);
export const useShortcutsShown = (): boolean => useSyncExternalStore(subscribe, () => listShown);
