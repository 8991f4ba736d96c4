import { Button, Tooltip } from "@mantine/core";
import type { ReactNode } from "react";
import { type Right, useMay } from "../api/session.ts";
import { useDialogs } from "./dialogs.tsx";
import { type NoValues, type VerbAbout, VerbDialog } from "./verb-dialog.tsx";

interface OfButton {
  readonly right: Right;
  /** True for the verb that the hub recommends now. */
  readonly first?: boolean;
  /** Why the verb cannot be used now. The button then stays visible and says so. */
  readonly disabledBecause?: string | null | undefined;
}

export type VerbButtonProps<Values extends object = NoValues> = VerbAbout<Values> & OfButton;

/**
 * A button for a change. Its dialog asks first, about the verb and the object as they were when the person pressed the button, and says what the hub
 * answered. A verb that cannot be used stays in sight and in the order of the keyboard, and tells the reason.
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
