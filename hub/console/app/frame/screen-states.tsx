import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { HubError } from "../api/hub-error.ts";
import { PageHead } from "../parts/page-head.tsx";
import { Empty, Failure, Loading } from "../parts/states.tsx";

/**
 * An error of a screen's own code. After an update of the hub, the file with a screen's code has another name, so loading the file by its earlier
 * name fails.
 */
export function ScreenFailed({ error, reset }: { readonly error: unknown; readonly reset?: () => void }): ReactNode {
  if (error instanceof HubError) return <Failure error={error} retry={reset} />;
  const text = error instanceof Error ? error.message : String(error);
  return (
    <div role="alert">
      <PageHead title="The screen could not be shown" />
      <Empty title="The console may have been updated" kind="failed">
        <p>Reload the page to get the console of the present hub. The error was: {text}</p>
        <Button onClick={() => location.reload()}>Reload</Button>
      </Empty>
    </div>
  );
}

export const ScreenLoading = (): ReactNode => <Loading what="the screen" />;

export const ScreenMissing = (): ReactNode => (
  <>
    <PageHead title="There is no such screen" />
    <Empty title="The address leads nowhere" kind="none">
      The console has no screen at this address. <Link to="/">Go to the overview</Link>.
    </Empty>
  </>
);
