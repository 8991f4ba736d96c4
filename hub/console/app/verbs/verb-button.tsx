import { Button, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactNode } from "react";
import { type Right, useMay } from "../api/session.ts";
import { VerbDialog, type VerbDialogProps } from "./verb-dialog.tsx";

export interface VerbButtonProps extends Omit<VerbDialogProps, "opened" | "onClose"> {
  readonly right: Right;
  /** True for the verb that the hub recommends now. */
  readonly first?: boolean;
  /** Why the verb cannot be used now. The button then stays visible and says so. */
  readonly disabledBecause?: string | null | undefined;
}

/**
 * A button for a change. It asks first, and says what the hub answered. A verb that cannot be used stays in sight and in the order of the keyboard, and
 * tells the reason.
 */
export function VerbButton({ right, first = false, disabledBecause, ...dialog }: VerbButtonProps): ReactNode {
  const [opened, { open, close }] = useDisclosure(false);
  const may = useMay();
  const because = may(right) ? (disabledBecause ?? null) : `Your role lacks the right ${right}.`;
  const button = (
    <Button
      variant={first && because === null ? "filled" : "default"}
      color={dialog.final ? "red" : undefined}
      aria-disabled={because !== null}
      data-disabled={because !== null || undefined}
      aria-label={`${dialog.verb} ${dialog.what}`}
      onClick={because === null ? open : (event) => event.preventDefault()}
    >
      {dialog.verb}
    </Button>
  );
  return (
    <>
      {because === null ? button : <Tooltip label={because}>{button}</Tooltip>}
      <VerbDialog {...dialog} opened={opened} onClose={close} />
    </>
  );
}
