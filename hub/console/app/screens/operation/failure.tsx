import type { ReactNode } from "react";
import { Evidence } from "../../parts/evidence.tsx";
import { Section } from "../../parts/page-head.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { words } from "../../parts/tones.ts";
import classes from "./operation.module.css";
import type { Operation } from "./operation-questions.ts";

const hasEvidence = (details: unknown): boolean =>
  typeof details === "object" && details !== null && Object.keys(details).length > 0;

/**
 * Shows why the operation failed, what to do about it, and the evidence. If the hub undid a failed operation but could not undo all of it, this
 * section says what is left.
 */
export function FailureOf({ record }: { readonly record: Operation }): ReactNode {
  const { error_code: code, error_message: message, failure_class: failure, next_action: action } = record;
  if (code === null && message === null) return null;
  return (
    <Section title={code === null ? "What the operation left" : "Why it failed"}>
      <div className={classes.failure}>
        <p className={classes.failureHead}>
          {failure === null ? null : <StatusBadge status="failed">{words(failure)}</StatusBadge>}
          {code === null ? null : <code>{code}</code>}
        </p>
        <p>{message}</p>
        {action === null ? null : (
          <p>
            <strong>Next:</strong> {action}
          </p>
        )}
      </div>
      {hasEvidence(record.error_details) ? (
        <details className={classes.evidence} open>
          <summary>Evidence</summary>
          <Evidence value={record.error_details} />
        </details>
      ) : null}
    </Section>
  );
}
