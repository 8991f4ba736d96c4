import { Button, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactNode } from "react";
import { type Right, useMay } from "../api/session.ts";
import { VerbDialog, type VerbDialogProps } from "./verb-dialog.tsx";

interface AskButtonProps extends Pick<VerbDialogProps, "verb" | "what" | "final"> {
  readonly right: Right;
  /** True for the verb that the hub recommends now. */
  readonly first?: boolean;
  /** Why the verb cannot be used now. The button then stays visible and says so. */
  readonly disabledBecause?: string | null | undefined;
  readonly onAsk: () => void;
}

export type VerbButtonProps = Omit<VerbDialogProps, "opened" | "onClose"> & Omit<AskButtonProps, "onAsk">;

/** A button for a change. A verb that cannot be used stays in sight and in the order of the keyboard, and tells the reason. */
export function AskButton({
  verb,
  what,
  final = false,
  right,
  first = false,
  disabledBecause,
  onAsk,
}: AskButtonProps): ReactNode {
  const may = useMay();
  const because = may(right) ? (disabledBecause ?? null) : `Your role lacks the right ${right}.`;
  const button = (
    <Button
      variant={first && because === null ? "filled" : "default"}
      color={final ? "red" : undefined}
      aria-disabled={because !== null}
      data-disabled={because !== null || undefined}
      aria-label={`${verb} ${what}`}
      onClick={because === null ? onAsk : (event) => event.preventDefault()}
    >
      {verb}
    </Button>
  );
  return because === null ? button : <Tooltip label={because}>{button}</Tooltip>;
}

/** A button for a change with its dialog, which asks first, and says what the hub answered. */
export function VerbButton({ right, first = false, disabledBecause, ...dialog }: VerbButtonProps): ReactNode {
  const [opened, { open, close }] = useDisclosure(false);
  const { verb, what, final = false } = dialog;
  return (
    <>
      <AskButton
        verb={verb}
        what={what}
        final={final}
        right={right}
        first={first}
        disabledBecause={disabledBecause}
        onAsk={open}
      />
      <VerbDialog {...dialog} opened={opened} onClose={close} />
    </>
  );
}
