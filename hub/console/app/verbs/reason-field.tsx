import { TextInput } from "@mantine/core";
import type { ReactNode } from "react";

/** The longest reason that the API takes. */
const MOST_REASON = 256;

interface Props {
  readonly value: string;
  readonly onChange: (reason: string) => void;
}

/** The field for the reason of a change, which has the focus when the dialog of a verb opens. */
export const ReasonField = ({ value, onChange }: Props): ReactNode => (
  <TextInput
    label="Reason, for the audit"
    data-autofocus
    required
    withAsterisk={false}
    maxLength={MOST_REASON}
    autoComplete="off"
    value={value}
    onChange={(event) => onChange(event.currentTarget.value)}
  />
);
