import { RouterProvider } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { personKey } from "../api/person.ts";
import { begin, useSession } from "../api/session.ts";
import { LiveProvider } from "../live/live.tsx";
import { router } from "./router.tsx";
import { NoAccess, SignIn, Starting } from "./sign-in.tsx";

/**
 * The entrance of the console: a person who has not signed in sees the sign-in page, and the address stays, so that the sign-in leads to the screen
 * of this address.
 */
export function Entrance(): ReactNode {
  const session = useSession();
  useEffect(() => void begin(), []);
  if (session.kind === "asking") return <Starting />;
  if (session.kind === "out") return <SignIn why={session.why} provider={session.provider} />;
  if (session.kind === "refused") return <NoAccess error={session.error} />;
  return (
    // If another person signs in in the same browser, all screens are made anew, so that nothing that the former person saw or chose stays.
    <LiveProvider key={personKey(session.hub.you)}>
      <RouterProvider router={router} />
    </LiveProvider>
  );
}
