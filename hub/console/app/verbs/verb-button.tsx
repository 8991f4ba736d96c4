import { Button, Tooltip } from "@mantine/core";
import type { ReactNode } from "react";
import { type Right, useMay } from "../api/session.ts";
import { useDialogs } from "./dialogs.tsx";
import { type NoValues, type VerbAbout, VerbDialog } from "./verb-dialog.tsx";

interface OfButton {
  readonly right: Right;
  /** True for the button of the verb that the hub recommends now. */
  readonly first?: boolean;
  /** Why the verb cannot be used now. A button whose verb cannot be used now stays visible and shows the reason. */
  readonly disabledBecause?: string | null | undefined;
}

export type VerbButtonProps<Values extends object = NoValues> = VerbAbout<Values> & OfButton;

/**
 * A button for a change. The button's dialog asks for confirmation, shows the verb and the object as they were when the person pressed the button,
 * and then shows the hub's answer. The button of a verb that cannot be used stays visible and reachable by the keyboard, and shows the reason.
 */
export function VerbButton<Values extends object = NoValues>({
  right,
  first = false,
  disabledBecause,
  ...about
}: VerbButtonProps<Values>): ReactNode {
  const may = useMay();
  const show = useDialogs();
  const because = may(right) ? (disabledBecause ?? null) : `Your role lacks the right ${right}.`;
  const { verb, what, final = false } = about;
  const button = (
    <Button
      variant={first && because === null ? "filled" : "default"}
      color={final ? "red" : undefined}
      aria-disabled={because !== null}
      data-disabled={because !== null || undefined}
      aria-label={`${verb} ${what}`}
      onClick={(event) =>
        because === null ? show((state) => <VerbDialog {...about} {...state} />) : event.preventDefault()
      }
    >
      {verb}
    </Button>
  );
  return because === null ? button : <Tooltip label={because}>{button}</Tooltip>;
}
