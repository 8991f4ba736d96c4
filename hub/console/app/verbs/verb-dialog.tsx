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
import type { DialogState } from "./dialogs.tsx";
import { ReasonField } from "./reason-field.tsx";

/** What every verb's request needs, independent of the fields of the verb's dialog. */
export interface Given {
  readonly reason: string;
  readonly headers: { readonly "Idempotency-Key": string };
}

/** The values of a dialog's fields, and the function that changes them. */
export interface Typed<Values> {
  readonly values: Values;
  readonly set: (changes: Partial<Values>) => void;
}

/** The values of a dialog that has no fields except the reason. */
export type NoValues = Readonly<Record<never, never>>;

export interface VerbAbout<Values extends object = NoValues> {
  /** The name of the verb as its button shows it, for example `Cordon`. */
  readonly verb: string;
  /** The object that the verb acts on, for example a hostname. */
  readonly what: string;
  /** One sentence that says what the verb does. */
  readonly effect: ReactNode;
  /** True for a verb whose effect cannot be undone. */
  readonly final?: boolean;
  /** False for a verb whose request takes no reason. */
  readonly asksReason?: boolean;
  /**
   * The topics that the verb changes. After a verb has run, the console at once reloads the data that `changes` names, without waiting for the hub's
   * events.
   */
  readonly changes: readonly Topic[];
  readonly run: (given: Given & Typed<Values>) => Promise<unknown>;
  /** What the message after a success says, besides the verb and its object. */
  readonly done?: (answer: never) => ReactNode;
  /** The initial values of the dialog's fields. */
  readonly initial?: Values;
  /** Further fields of the dialog, which are shown above the field for the reason. */
  readonly fields?: (typed: Typed<Values>) => ReactNode;
  /** False while the dialog cannot show yet what the verb would do, for example because the hub has not answered. */
  readonly isReady?: (values: Values) => boolean;
}

type Props<Values extends object> = VerbAbout<Values> & DialogState;

/** Returns advice for the person about an error, in addition to the hub's message. */
function adviceFor(error: Error): string | null {
  if (!(error instanceof HubError)) return null;
  if (error.status === 412 || error.code === "precondition_failed")
    return "Somebody else has changed it meanwhile. Close the dialog, look at the present state, and try again.";
  if (error.code === "count_mismatch")
    return "The selection has changed meanwhile. Close the dialog and look at it again.";
  return null;
}

export function VerbDialog<Values extends object>(props: Props<Values>): ReactNode {
  const { verb, what, opened, onClose } = props;
  return (
    <Modal opened={opened} onClose={onClose} title={`${verb} ${what}`} closeButtonProps={{ "aria-label": "Close" }}>
      {opened ? <VerbForm {...props} /> : null}
    </Modal>
  );
}

function useVerb<Values extends object>({ verb, what, changes, run, done, onClose }: Props<Values>) {
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

function VerbForm<Values extends object>(props: Props<Values>): ReactNode {
  const { verb, effect, final = false, asksReason = true, onClose, initial, fields, isReady } = props;
  const [reason, setReason] = useState("");
  const [values, setValues] = useState(initial ?? ({} as Values));
  const set = (changes: Partial<Values>): void => setValues((before) => ({ ...before, ...changes }));
  const ready = isReady?.(values) ?? true;
  // Sending the same dialog again, for example after a lost answer, counts as the same request for the hub.
  const [headers] = useState(onceOnly);
  const asking = useVerb(props);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!ready || (asksReason && reason.trim() === "")) return;
    asking.mutate({ reason: reason.trim(), headers, values, set });
  };
  const advice = asking.error === null ? null : adviceFor(asking.error);
  return (
    <form onSubmit={submit}>
      <div className={classes.dialogText}>{effect}</div>
      {fields?.({ values, set })}
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
        <Button type="submit" color={final ? "red" : undefined} loading={asking.isPending} disabled={!ready}>
          {verb}
        </Button>
      </div>
    </form>
  );
}
