import { Checkbox } from "@mantine/core";
import type { ReactNode } from "react";
import { useSites } from "../api/sites.ts";

/** The sites as checkboxes, for a form that limits an object, such as a stored key, to some sites. */
export function SiteBoxes({
  chosen,
  error,
  onChange,
}: {
  readonly chosen: readonly string[];
  readonly error?: string | undefined;
  readonly onChange: (site_ids: string[]) => void;
}): ReactNode {
  const sites = [...useSites().values()];
  return (
    <>
      <Checkbox.Group aria-label="Sites" error={error} value={[...chosen]} onChange={onChange}>
        {sites.map(({ id, name }) => (
          <Checkbox key={id} value={id} label={name} mb={4} />
        ))}
      </Checkbox.Group>
      {sites.length === 0 ? "The hub has no site yet." : null}
    </>
  );
}
