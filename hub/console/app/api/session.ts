import { useSyncExternalStore } from "react";
import { forgetAllAsked } from "../verbs/asked-list.ts";
import { api, post, read, send } from "./client.ts";
import { HubError } from "./hub-error.ts";
import { personKey } from "./person.ts";
import { onSessionEnded, queryClient } from "./query-client.ts";
import type { Answer } from "./schema.ts";

type HubStatus = Answer<"getHubStatus">;
export type You = HubStatus["you"];
export type Right = You["rights"][number];

export type Session =
  | { readonly kind: "asking" }
  | { readonly kind: "out"; readonly why: string | null; readonly provider: boolean }
  /** The person has signed in but has no right in Muster, or the hub does not answer the question who has signed in. */
  | { readonly kind: "refused"; readonly error: HubError }
  | { readonly kind: "in"; readonly hub: HubStatus };

let session: Session = { kind: "asking" };
/** The person for whom the console last read data since the page was loaded. */
let shownTo: string | null = null;
const listeners = new Set<() => void>();
const set = (next: Session): void => {
  session = next;
  for (const tell of listeners) tell();
};

/** All tabs of a browser share one session. A browser tab of the console tells the other tabs when the session begins or ends. */
const tabs = new BroadcastChannel("muster-session");
tabs.addEventListener("message", ({ data }) => {
  if (data === "ended") void leave("You signed out in another tab.");
  else void begin();
});
onSessionEnded(() => {
  if (session.kind === "in") void leave("Your session has ended. Sign in again.");
});

async function state(): Promise<{ signedIn: boolean; provider: boolean }> {
  const answer = await send(new Request(new URL("/sign-in/state", location.origin)));
  const { signed_in: signedIn, provider } = await answer.json().catch(() => ({ signed_in: true, provider: false }));
  return { signedIn: signedIn === true, provider: provider === true };
}

/**
 * Finds out who uses the console. The console asks for the state of the sign-in before it calls the API, so that a browser without a session causes
 * no refused request.
 */
export async function begin(): Promise<void> {
  try {
    const { signedIn, provider } = await state();
    if (!signedIn) return set({ kind: "out", why: null, provider });
    const hub = await read(api.GET("/api/v1/admin/status"));
    const person = personKey(hub.you);
    if (shownTo !== null && shownTo !== person) forget();
    shownTo = person;
    set({ kind: "in", hub });
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    if (error.status === 401) return leave("Your session has ended. Sign in again.");
    set({ kind: "refused", error });
  }
}

/** Forgets all data that the console has read in the session, and all approvals that the person has asked for. */
function forget(): void {
  queryClient.clear();
  forgetAllAsked();
}

async function leave(why: string): Promise<void> {
  set({ kind: "out", why, provider: false });
  forget();
  const { provider } = await state().catch(() => ({ provider: false }));
  if (session.kind === "out") set({ kind: "out", why, provider });
}

export async function signIn(token: string): Promise<void> {
  await post("/sign-in/token", { token });
  tabs.postMessage("begun");
  await begin();
}

export async function signOut(everywhere: boolean): Promise<void> {
  await post("/sign-out", { everywhere });
  tabs.postMessage("ended");
  await leave(everywhere ? "You signed out everywhere." : "You signed out.");
}

export const useSession = (): Session =>
  useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => session,
  );

/** Returns the hub and the person of the session. Only components that the console shows after the sign-in may call `useHub`. */
export function useHub(): HubStatus {
  const now = useSession();
  if (now.kind !== "in") throw new Error("the session has ended");
  return now.hub;
}

/** Says whether the person has a right. The hub decides about each request again; the console only hides what the hub would refuse. */
export const useMay = (): ((right: Right | "none") => boolean) => {
  const { you } = useHub();
  return (right) => right === "none" || you.rights.includes(right);
};
