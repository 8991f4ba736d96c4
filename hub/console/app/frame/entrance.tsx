import { RouterProvider } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { personKey } from "../api/person.ts";
import { begin, useSession } from "../api/session.ts";
import { LiveProvider } from "../live/live.tsx";
import { router } from "./router.tsx";
import { NoAccess, SignIn, Starting } from "./sign-in.tsx";

/** The way in: who has not signed in sees the sign-in, and the address stays, so that the sign-in leads to the screen that was asked for. */
export function Entrance(): ReactNode {
  const session = useSession();
  useEffect(() => void begin(), []);
  if (session.kind === "asking") return <Starting />;
  if (session.kind === "out") return <SignIn why={session.why} provider={session.provider} />;
  if (session.kind === "refused") return <NoAccess error={session.error} />;
  return (
    // Another person in the same browser begins with new screens, and nothing that they show or have chosen stays.
    <LiveProvider key={personKey(session.hub.you)}>
      <RouterProvider router={router} />
    </LiveProvider>
  );
}
