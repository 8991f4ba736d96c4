import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { useHub } from "../api/session.ts";
import { useLive } from "../live/live.tsx";
import { useNow } from "../parts/relative-time.tsx";
import { lengthOf } from "../parts/relative-words.ts";
import classes from "./frame.module.css";

/** The warnings about the hub that every screen shows. */
export const HubBanners = (): ReactNode => (
  <>
    <AwayBanner />
    <SecretStoreBanner />
  </>
);

function AwayBanner(): ReactNode {
  const { standing, tryNow } = useLive();
  useNow();
  return (
    <div role="status">
      {standing.kind === "away" ? (
        <div className={classes.banner} data-tone="bad">
          <p>
            <strong>The hub does not answer</strong> since {lengthOf((Date.now() - standing.since) / 1000)}. The screen
            shows what the hub said last, and the console tries again by itself.
          </p>
          <div className={classes.bannerActions}>
            <Button variant="default" onClick={tryNow}>
              Try now
            </Button>
          </div>
        </div>
      ) : null}
      {standing.kind === "refused" && standing.status === 403 ? (
        <div className={classes.banner}>
          <p>Your role may not follow events, so reload a screen to see changes.</p>
        </div>
      ) : null}
    </div>
  );
}

function SecretStoreBanner(): ReactNode {
  const { secret_store: store } = useHub();
  if (store.code === "ok") return null;
  return (
    <div role="status" className={classes.banner} data-tone="bad">
      <p>
        <strong>Secret store: {store.code}</strong> {store.detail}
      </p>
    </div>
  );
}
