import { useDisclosure } from "@mantine/hooks";
import { useRouter } from "@tanstack/react-router";
import { createContext, type ReactNode, use, useCallback, useEffect, useState } from "react";

export interface DialogState {
  readonly opened: boolean;
  readonly onClose: () => void;
}
type Draw = (state: DialogState) => ReactNode;

const DialogsContext = createContext<(draw: Draw) => void>(() => {
  throw new Error("only a screen can open a dialog");
});

/**
 * Returns the function that opens a dialog; the dialog is not a child of the screen that opens it. The dialog stays open even if another person or an
 * event removes the row or button that opened it, because the person must still read the hub's answer.
 */
export const useDialogs = (): ((draw: Draw) => void) => use(DialogsContext);

/** Renders the dialogs of all screens, of which at most one is open. */
export function Dialogs({ children }: { readonly children: ReactNode }): ReactNode {
  const [shown, setShown] = useState<{ readonly number: number; readonly draw: Draw } | null>(null);
  const show = useCallback(
    (draw: Draw): void => setShown((before) => ({ number: (before?.number ?? 0) + 1, draw })),
    [],
  );
  return (
    <DialogsContext value={show}>
      {children}
      {shown === null ? null : <Shown key={shown.number} draw={shown.draw} />}
    </DialogsContext>
  );
}

/**
 * A dialog is rendered closed first and then opened, so that it knows which element had the focus and gives the focus back. Opening
 * another screen closes the dialog.
 */
function Shown({ draw }: { readonly draw: Draw }): ReactNode {
  const [opened, { open, close }] = useDisclosure(false);
  const router = useRouter();
  useEffect(open, [open]);
  useEffect(
    () => router.subscribe("onBeforeNavigate", ({ pathChanged }) => (pathChanged ? close() : undefined)),
    [router, close],
  );
  return draw({ opened, onClose: close });
}
