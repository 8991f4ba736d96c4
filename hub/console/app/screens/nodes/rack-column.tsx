import type { ReactNode } from "react";
import { NodeLink } from "../../parts/links.tsx";
import { ToneMark } from "../../parts/status-badge.tsx";
import { counted, toneOf, words } from "../../parts/tones.ts";
import type { NodeRow } from "./node-questions.ts";
import type { Rack, Slot } from "./rack-layout.ts";
import classes from "./racks.module.css";

const UNIT_HEIGHT = 20;

/** Draws one rack as a table: a row for each unit with a node, and one row for each run of units without nodes. */
export const RackColumn = ({
  rack,
  isWhole,
}: {
  readonly rack: Rack<NodeRow>;
  /** False while a page of the node list that is not loaded yet may contain more nodes of the rack. */
  readonly isWhole: boolean;
}): ReactNode => (
  <table className={classes.rack}>
    <caption className={classes.caption}>
      {rack.name} <span>{isWhole ? counted(rack.nodes, "node") : "loading more"}</span>
    </caption>
    <colgroup>
      <col className={classes.units} />
      <col />
    </colgroup>
    <thead className={classes.unseen}>
      <tr>
        <th scope="col">Unit</th>
        <th scope="col">Node</th>
      </tr>
    </thead>
    <tbody>
      {rack.slots.map((slot) =>
        slot.kind === "gap" ? (
          <Gap key={slot.top} slot={slot} />
        ) : (
          <tr key={slot.unit} style={{ height: UNIT_HEIGHT }}>
            <th scope="row">{slot.unit}</th>
            <td>
              <Unit slot={slot} />
            </td>
          </tr>
        ),
      )}
    </tbody>
  </table>
);

function Gap({ slot: { top, bottom } }: { readonly slot: Extract<Slot<NodeRow>, { kind: "gap" }> }): ReactNode {
  return (
    <tr className={classes.gap} style={{ height: (top - bottom + 1) * UNIT_HEIGHT }}>
      <th scope="row">{top === bottom ? top : `${top} - ${bottom}`}</th>
      <td>
        <span className={classes.unseen}>no node</span>
      </td>
    </tr>
  );
}

function Unit({
  slot: { nodes, isContested },
}: {
  readonly slot: Extract<Slot<NodeRow>, { kind: "unit" }>;
}): ReactNode {
  return (
    <>
      {isContested ? <p className={classes.contested}>Several nodes have this unit</p> : null}
      {nodes.map(({ id, hostname, status }) => (
        <span key={id} className={classes.node} data-tone={toneOf(status)} title={`${hostname}: ${words(status)}`}>
          <ToneMark tone={toneOf(status)} />
          <NodeLink id={id}>{hostname}</NodeLink>
          <span className={status === "active" ? classes.unseen : classes.status}>{words(status)}</span>
        </span>
      ))}
    </>
  );
}
