/** The requests that were made in this tab and wait for a second person's approval, each with what the person wanted to do. */
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

/** The next person who signs in in this tab must not see the requests of the previous one. */
export const forgetAllAsked = (): void => set([]);

export const askedStore = {
  subscribe: (tell: () => void): (() => void) => {
    listeners.add(tell);
    return () => listeners.delete(tell);
  },
  now: (): readonly AskedRequest[] => asked,
};
