import { CloseButton } from "@mantine/core";
import { type ReactNode, useSyncExternalStore } from "react";
import classes from "./frame.module.css";
import { dismiss, noticeStore } from "./notice-list.ts";

/** The region of notes. The region of notes is always in the document, so that a screen reader announces each note that appears in it. */
export function Notices(): ReactNode {
  const notices = useSyncExternalStore(noticeStore.subscribe, noticeStore.now);
  return (
    <div className={classes.notices} role="log" aria-live="polite" aria-label="Notes">
      {notices.map(({ id, tone, text }) => (
        <div key={id} className={classes.notice} data-tone={tone}>
          <div className={classes.noticeText}>{text}</div>
          <CloseButton size="sm" aria-label="Close the note" onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
