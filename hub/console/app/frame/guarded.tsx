import type { ComponentType, ReactNode } from "react";
import { useEffect } from "react";
import { useMay } from "../api/session.ts";
import { PageHead } from "../parts/page-head.tsx";
import { Empty } from "../parts/states.tsx";
import type { Screen } from "./screen.ts";

/** Returns the component of a screen, which a person without the screen's right sees only as a note about the right. */
export const guarded = ({ title, right }: Screen, Page: ComponentType): (() => ReactNode) => {
  function Guarded(): ReactNode {
    const may = useMay();
    useEffect(() => {
      document.title = `${title} - Muster`;
    }, []);
    if (may(right)) return <Page />;
    return (
      <>
        <PageHead title={title} />
        <Empty title="You may not see this screen" kind="forbidden">
          The screen needs the right {right}. Ask an administrator for a role that has it.
        </Empty>
      </>
    );
  }
  return Guarded;
};
