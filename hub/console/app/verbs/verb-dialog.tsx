import { Button, Modal } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { onceOnly } from "../api/client.ts";
import { HubError } from "../api/hub-error.ts";
import { queryClient } from "../api/query-client.ts";
import { notify } from "../frame/notice-list.ts";
import type { Topic } from "../live/topics.ts";
import { isAbout, topicsIn } from "../live/topics.ts";
import classes from "../parts/parts.module.css";
import { rememberAsked } from "./asked-list.ts";
import { ReasonField } from "./reason-field.tsx";

/** What a verb's request needs beside its own values. */
export interface Given {
  readonly reason: string;
  readonly headers: { readonly "Idempotency-Key": string };
}

export interface VerbDialogProps {
  /** The verb as the button shows it, for example `Cordon`. */
  readonly verb: string;
  /** What the verb acts on, for example the hostname. */
  readonly what: string;
  /** One sentence that says what the action that the dialog asks about does. */
  readonly effect: ReactNode;
  /** True for a verb that cannot be undone. */
  readonly final?: boolean;
  /** False for a verb whose request has no reason. */
  readonly asksReason?: boolean;
  /** The topics that the verb changes. The console asks for them again at once, without waiting for the events. */
  readonly changes: readonly Topic[];
  readonly run: (given: Given) => Promise<unknown>;
  /** What the note says after a success, beside the verb and its object. */
  readonly done?: (answer: never) => ReactNode;
  readonly opened: boolean;
  readonly onClose: () => void;
  /** More fields of the dialog, above the reason. */
  readonly children?: ReactNode;
}

/** What the person can do about a refusal, beside what the hub says. */
function adviceFor(error: Error): string | null {
  if (!(error instanceof HubError)) return null;
  if (error.status === 412 || error.code === "precondition_failed")
    return "Somebody else has changed it meanwhile. Close the dialog, look at the present state, and try again.";
  if (error.code === "count_mismatch")
    return "The selection has changed meanwhile. Close the dialog and look at it again.";
  return null;
}

export function VerbDialog(props: VerbDialogProps): ReactNode {
  const { verb, what, opened, onClose } = props;
  return (
    <Modal opened={opened} onClose={onClose} title={`${verb} ${what}`} closeButtonProps={{ "aria-label": "Close" }}>
      {opened ? <VerbForm {...props} /> : null}
    </Modal>
  );
}

function useVerb({ verb, what, changes, run, done, onClose }: VerbDialogProps) {
  return useMutation({
    mutationFn: run,
    onSuccess: (answer) => {
      const more = done?.(answer as never);
      notify({
        tone: "good",
        text: (
          <>
            {verb} {what}: the hub has taken it. {more}
          </>
        ),
      });
      onClose();
    },
    onError: (error) => {
      const approval =
        error instanceof HubError && error.code === "approval_required" ? error.context["approval_id"] : undefined;
      if (approval === undefined) return;
      rememberAsked({ id: approval, what: `${verb} ${what}` });
      onClose();
    },
    onSettled: () =>
      queryClient.invalidateQueries({ predicate: ({ meta }) => isAbout(topicsIn(meta), new Set(changes)) }),
  });
}

function VerbForm(props: VerbDialogProps): ReactNode {
  const { verb, effect, final = false, asksReason = true, onClose, children } = props;
  const [reason, setReason] = useState("");
  // A repeat of the same dialog is the same request for the hub, for example after an answer that was lost.
  const [headers] = useState(onceOnly);
  const asking = useVerb(props);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (asksReason && reason.trim() === "") return;
    asking.mutate({ reason: reason.trim(), headers });
  };
  const advice = asking.error === null ? null : adviceFor(asking.error);
  return (
    <form onSubmit={submit}>
      <div className={classes.dialogText}>{effect}</div>
      {children}
      {asksReason ? <ReasonField value={reason} onChange={setReason} /> : null}
      {asking.error === null ? null : (
        <div role="alert" className={classes.refusal}>
          <p>{asking.error.message}</p>
          {advice === null ? null : <p>{advice}</p>}
        </div>
      )}
      <div className={classes.dialogFoot}>
        <Button variant="default" onClick={onClose}>
          No
        </Button>
        <Button type="submit" color={final ? "red" : undefined} loading={asking.isPending}>
          {verb}
        </Button>
      </div>
    </form>
  );
}
