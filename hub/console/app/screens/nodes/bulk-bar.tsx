import { Button, Menu } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useMay } from "../../api/session.ts";
import { Icon } from "../../look/icons.tsx";
import { counted } from "../../parts/tones.ts";
import { BulkDialog } from "./bulk-dialog.tsx";
import { BULK_VERBS, type BulkVerb } from "./bulk-requests.ts";
import type { Facets, NodesSearch } from "./node-questions.ts";
import classes from "./nodes.module.css";
import { bySite, type Chosen, NOTHING, sizeOf } from "./selection.ts";

interface Props {
  readonly chosen: Chosen;
  readonly facets: Facets | undefined;
  readonly search: NodesSearch;
  readonly onChange: (chosen: Chosen) => void;
}

const VERBS = Object.keys(BULK_VERBS) as BulkVerb[];

/** The bar with the actions for the nodes that a person has selected in the list. */
export function BulkBar({ chosen, facets, search, onChange }: Props): ReactNode {
  const [asked, setAsked] = useState<BulkVerb | null>(null);
  const may = useMay();
  const count = sizeOf(chosen);
  const total = facets?.total ?? 0;
  if (count === 0) return null;
  const close = (done: boolean): void => {
    setAsked(null);
    if (done) onChange(NOTHING);
  };
  return (
    <section className={classes.bulk} aria-label="The chosen nodes">
      <span role="status">
        {chosen.kind === "all" ? `All ${counted(count, "node")} of the filter` : `${counted(count, "node")} chosen`}
      </span>
      {chosen.kind === "some" && total > count && search.include_deleted === undefined ? (
        <Button variant="subtle" onClick={() => onChange({ kind: "all", count: total })}>
          Choose all {total.toLocaleString("en")} of the filter
        </Button>
      ) : null}
      <Button variant="subtle" onClick={() => onChange(NOTHING)}>
        Choose none
      </Button>
      <Menu position="bottom-end" withinPortal={false}>
        <Menu.Target>
          <Button disabled={!may("operate_nodes")} rightSection={<Icon name="chevron" size={12} />}>
            Do
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {VERBS.map((verb) => (
            <Menu.Item key={verb} onClick={() => setAsked(verb)}>
              {BULK_VERBS[verb].title}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {may("operate_nodes") ? null : <span className={classes.note}>Your role lacks the right operate_nodes.</span>}
      {asked === null ? null : (
        <BulkDialog
          verb={asked}
          count={count}
          search={search}
          division={bySite(chosen, facets, search.site_id)}
          onClose={close}
        />
      )}
    </section>
  );
}
