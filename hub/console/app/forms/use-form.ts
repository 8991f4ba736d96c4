import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useRef, useState } from "react";
import { onceOnly } from "../api/client.ts";
import { HubError } from "../api/hub-error.ts";
import { queryClient } from "../api/query-client.ts";
import { isAbout, type Topic, topicsIn } from "../live/topics.ts";
import { rememberAsked } from "../verbs/asked-list.ts";
import { complaints, type Errors, errorsByField, hasComplaint } from "./form-errors.ts";

type NamesOf<Values, Type> = { [Name in keyof Values]: Values[Name] extends Type ? Name : never }[keyof Values] &
  string;
type Headers = ReturnType<typeof onceOnly>;

interface About<Values, Taken> {
  readonly initial: Values;
  /** Says what is wrong with the values of the form, before the form is sent. */
  readonly check: (values: Values) => Errors<Values>;
  readonly send: (values: Values, headers: Headers) => Promise<Taken>;
  /** The topics that the form changes. */
  readonly changes: readonly Topic[];
  readonly onTaken: (taken: Taken, values: Values) => void;
  /** What the form does, in words for the note that a second person has to approve the request. */
  readonly what: string;
}

export interface Form<Values> {
  readonly values: Values;
  readonly set: (changes: Partial<Values>) => void;
  readonly errors: Errors<Values>;
  /** Why the hub did not carry the form's request out: a refusal, or a second person has to approve the request first. */
  readonly refusal: Error | null;
  readonly pending: boolean;
  readonly submit: (event: FormEvent) => void;
  /** What a field of text needs. */
  readonly text: (name: NamesOf<Values, string>) => {
    name: string;
    value: string;
    error: string | undefined;
    onChange: (event: { currentTarget: { value: string } }) => void;
  };
  readonly flag: (name: NamesOf<Values, boolean>) => {
    name: string;
    checked: boolean;
    onChange: (event: { currentTarget: { checked: boolean } }) => void;
  };
}

/** A repeat of the same form is the same request for the hub, for example after an answer that was lost. A changed form is another request. */
function useHeaders(): (values: unknown) => Headers {
  const last = useRef({ text: "", headers: onceOnly() });
  return (values) => {
    const text = JSON.stringify(values);
    if (last.current.text !== text) last.current = { text, headers: onceOnly() };
    return last.current.headers;
  };
}

/** The state of a form: what a person typed, what is wrong with it, and what became of the request. Nothing is sent before all checks pass. */
export function useForm<Values extends object, Taken>(about: About<Values, Taken>): Form<Values> {
  const { initial, check, send, changes, onTaken, what } = about;
  const [values, setValues] = useState(initial);
  const [tried, setTried] = useState(false);
  const headersFor = useHeaders();
  const sending = useMutation({
    mutationFn: (given: Values) => send(given, headersFor(given)),
    onSuccess: onTaken,
    onError: (error) => {
      const approval = error instanceof HubError ? error.context["approval_id"] : undefined;
      if (approval !== undefined) rememberAsked({ id: approval, what });
    },
    onSettled: () =>
      queryClient.invalidateQueries({ predicate: ({ meta }) => isAbout(topicsIn(meta), new Set(changes)) }),
  });
  const ours = tried ? complaints(check(values)) : {};
  const hubs = sending.error instanceof HubError ? errorsByField(sending.error.fields) : {};
  const errors = { ...hubs, ...ours } as Errors<Values>;
  const set = (more: Partial<Values>): void => {
    setValues((before) => ({ ...before, ...more }));
    if (sending.isError) sending.reset();
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setTried(true);
    if (hasComplaint(check(values))) {
      const form = event.currentTarget;
      requestAnimationFrame(() => form.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
      return;
    }
    sending.mutate(values);
  };
  return {
    values,
    set,
    errors,
    refusal: sending.error,
    pending: sending.isPending,
    submit,
    text: (name) => ({
      name,
      value: values[name] as string,
      error: errors[name],
      onChange: ({ currentTarget: { value } }) => set({ [name]: value } as Partial<Values>),
    }),
    flag: (name) => ({
      name,
      checked: values[name] as boolean,
      onChange: ({ currentTarget: { checked } }) => set({ [name]: checked } as Partial<Values>),
    }),
  };
}
