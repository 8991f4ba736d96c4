/** The requests of this tab that wait for a second person, each with what the person wanted to do. */
export interface AskedRequest {
  readonly id: string;
  readonly what: string;
}

const MOST = 5;
let asked: readonly AskedRequest[] = [];
const listeners = new Set<() => void>();
const set = (next: readonly AskedRequest[]): void => {
  asked = next;
  for (const tell of listeners) tell();
};

export const rememberAsked = (one: AskedRequest): void =>
  set([...asked.filter(({ id }) => id !== one.id), one].slice(-MOST));
export const forgetAsked = (id: string): void => set(asked.filter((one) => one.id !== id));

/** A person who signs in afterwards must not see what another one has asked for. */
export const forgetAllAsked = (): void => set([]);

export const askedStore = {
  subscribe: (tell: () => void): (() => void) => {
    listeners.add(tell);
    return () => listeners.delete(tell);
  },
  now: (): readonly AskedRequest[] => asked,
};
