import { Button } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Note } from "./note.tsx";
import classes from "./shown-once.module.css";

/**
 * Shows a secret that the hub returns only once, in the answer that creates it. Only this screen shows the new secret, so a person who leaves the
 * screen cannot see the secret again.
 */
export function ShownOnce({
  title,
  secret,
  children,
}: {
  readonly title: string;
  readonly secret: string;
  readonly children?: ReactNode;
}): ReactNode {
  const [copied, setCopied] = useState<"no" | "yes" | "refused">("no");
  const copy = (): void =>
    void navigator.clipboard.writeText(secret).then(
      () => setCopied("yes"),
      () => setCopied("refused"),
    );
  return (
    <div role="status">
      <Note tone="attention" title={title}>
        {children}
        <div className={classes.line}>
          <code className={classes.secret}>{secret}</code>
          {/* A browser without a safe connection to the hub has no clipboard. */}
          {navigator.clipboard === undefined ? null : (
            <Button variant="default" onClick={copy}>
              {copied === "yes" ? "Copied" : "Copy"}
            </Button>
          )}
        </div>
        {copied === "refused" ? <p>The browser did not allow to copy. Select the text and copy it by hand.</p> : null}
      </Note>
    </div>
  );
}
