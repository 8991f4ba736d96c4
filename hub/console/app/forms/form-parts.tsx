import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { HubError } from "../api/hub-error.ts";
import parts from "../parts/parts.module.css";
import classes from "./forms.module.css";
import type { Form } from "./use-form.ts";

/** A form with its fields, the refusal by the hub and the button that sends the form. */
export function FormOf<Values extends object>({
  form,
  label,
  send,
  final = false,
  disabled = false,
  children,
}: {
  readonly form: Form<Values>;
  /** The purpose of the form, which a screen reader announces. */
  readonly label: string;
  /** The word of the button. */
  readonly send: string;
  readonly final?: boolean;
  readonly disabled?: boolean;
  readonly children: ReactNode;
}): ReactNode {
  const wrong = Object.values(form.errors).filter((error) => error !== undefined).length;
  return (
    <form className={classes.form} aria-label={label} noValidate onSubmit={form.submit}>
      {children}
      {form.refusal === null ? null : <Refusal error={form.refusal} />}
      <div className={classes.foot}>
        <span role="status" className={classes.wrong}>
          {wrong === 0 ? "" : `${wrong === 1 ? "One field needs" : `${wrong} fields need`} a change; nothing was sent.`}
        </span>
        <Button type="submit" color={final ? "red" : undefined} loading={form.pending} disabled={disabled}>
          {send}
        </Button>
      </div>
    </form>
  );
}

function Refusal({ error }: { readonly error: Error }): ReactNode {
  const known = error instanceof HubError ? error : null;
  return (
    <div role="alert" className={parts.refusal}>
      <p>{error.message}</p>
      {known?.code === "approval_required" ? <p>The line at the top says how the request stands.</p> : null}
    </div>
  );
}

/** Fields that belong together, with a sentence that says what they are for. */
export const FieldGroup = ({
  title,
  about,
  children,
}: {
  readonly title: string;
  readonly about?: ReactNode;
  readonly children: ReactNode;
}): ReactNode => (
  <fieldset className={classes.group}>
    <legend className={classes.legend}>{title}</legend>
    {about === undefined ? null : <p className={classes.about}>{about}</p>}
    <div className={classes.fields}>{children}</div>
  </fieldset>
);

/** A form field that needs the whole width of its group of fields. */
export const Wide = ({ children }: { readonly children: ReactNode }): ReactNode => (
  <div className={classes.wide}>{children}</div>
);
