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
 * Returns the function that opens a dialog, which is no part of the screen that asks for it. The dialog stays as it was opened, whatever becomes of the
 * row or the button that opened it: another person or an event may take these away, and the person must still read what the hub answers.
 */
export const useDialogs = (): ((draw: Draw) => void) => use(DialogsContext);

/** The place of the dialogs of all screens, of which one is open at most. */
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

/** A dialog is closed when it appears first, so that it knows which element has the focus and gives it back. Another screen closes it. */
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
