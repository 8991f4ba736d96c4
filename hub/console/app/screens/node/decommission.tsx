import { NumberInput, Select, Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { HubError } from "../../api/hub-error.ts";
import { question } from "../../api/query-client.ts";
import { OperationLink } from "../../parts/links.tsx";
import { Loading } from "../../parts/states.tsx";
import { words } from "../../parts/tones.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { bodyOf, type Choice, faultOf, MODES, MOST_DRAIN_MINUTES, type Mode, planOf } from "./decommission-modes.ts";
import classes from "./node.module.css";
import { changedBy, type Node } from "./node-questions.ts";
import { whyNot } from "./node-verbs.ts";

const USUAL: Choice = { erase: "secure", scope: "all", force: false, removeRecord: false, drainMinutes: 60 };

const consequences = (node: Node, mode: Mode, siteId: string) =>
  question([`nodes/${node.id}`], ["node", node.id, "plan", mode], (signal) =>
    read(api.POST("/api/v1/admin/decommissions/batch", { body: planOf(siteId, node.id, mode), signal })),
  );

/** A decommission of one mode. The dialog of a decommission shows the stages that would follow, and the hub's plan, before the person confirms. */
export function DecommissionButton({ mode, node }: { readonly mode: Mode; readonly node: Node }): ReactNode {
  const { title, effect, final } = MODES[mode];
  return (
    <VerbButton
      verb={title}
      what={node.hostname}
      effect={
        <>
          <p className={classes.effect}>{effect}</p>
          <Plan node={node} mode={mode} />
        </>
      }
      final={final}
      right="operate_nodes"
      disabledBecause={whyNot(mode, node)}
      changes={changedBy(node.id)}
      run={async ({ reason, headers, values: choice }) => {
        refuseFault(faultOf(mode, choice));
        return start(mode, node.id, { ...choice, reason }, headers);
      }}
      done={(answer: { readonly decommission_id: string }) => (
        <OperationLink id={answer.decommission_id}>Look at the operation</OperationLink>
      )}
      initial={USUAL}
      fields={({ values, set }) => <Options mode={mode} choice={values} onChange={set} />}
    />
  );
}

/** The dialog sends no request while an option is invalid. */
function refuseFault(fault: string | undefined): void {
  if (fault === undefined) return;
  const detail = "An option has a fault. Nothing was sent.";
  throw new HubError({ status: 422, code: "option_fault", title: "An option has a fault", detail });
}

function start(
  mode: Mode,
  id: string,
  choice: Choice & { readonly reason: string },
  header: { readonly "Idempotency-Key": string },
): Promise<unknown> {
  const params = { path: { id }, header };
  const body = bodyOf(mode, choice);
  if (body.mode === "drain") {
    const { mode: _, ...rest } = body;
    return read(api.POST("/api/v1/admin/nodes/{id}/drain", { params, body: rest }));
  }
  if (body.mode === "release" || body.mode === "remove")
    return read(api.POST(`/api/v1/admin/nodes/{id}/${body.mode}`, { params, body: { reason: body.reason } }));
  if (body.mode === "storage_cleanup") {
    const { mode: _, ...rest } = body;
    return read(api.POST("/api/v1/admin/nodes/{id}/storage-cleanup", { params, body: rest }));
  }
  return read(api.POST("/api/v1/admin/nodes/{id}/decommission", { params, body }));
}

/** Says whether the hub would accept the decommission now. The hub can plan a decommission only for a node that belongs to a site. */
function Plan({ node, mode }: { readonly node: Node; readonly mode: Mode }): ReactNode {
  const siteId = node.site_id;
  const { data, error } = useQuery({ ...consequences(node, mode, siteId ?? ""), enabled: siteId !== null, gcTime: 0 });
  if (siteId === null) return null;
  if (error !== null) return <p className={classes.warning}>{error.message}</p>;
  if (data === undefined) return <Loading what="the plan of the hub" />;
  const [refusal] = data.refusals;
  if (refusal !== undefined)
    return (
      <p className={classes.warning}>
        The hub would refuse it now: {refusal.message} <code>{refusal.error_code}</code>
      </p>
    );
  const warning = data.decommissions[0]?.warning ?? null;
  return (
    <p className={warning === null ? classes.fine : classes.warning}>
      The hub would begin the {words(mode)} now. {warning}
    </p>
  );
}

const ERASES = [
  { value: "secure", label: "secure: the disks erase themselves, or MAAS overwrites them" },
  { value: "quick", label: "quick: MAAS overwrites the beginning and the end of each disk" },
  { value: "none", label: "none: the data stays on the disks" },
];
const SCOPES = [
  { value: "all", label: "local folders and Weka mounts" },
  { value: "local", label: "local folders" },
  { value: "weka", label: "Weka mounts" },
];

function Options({
  mode,
  choice,
  onChange,
}: {
  readonly mode: Mode;
  readonly choice: Choice;
  readonly onChange: (more: Partial<Choice>) => void;
}): ReactNode {
  const has = MODES[mode].options;
  return (
    <div className={classes.options}>
      {has.includes("erase") ? (
        <Select
          label="Erase of the disks"
          data={ERASES}
          value={choice.erase}
          allowDeselect={false}
          onChange={(erase) => onChange({ erase: erase as Choice["erase"] })}
        />
      ) : null}
      {has.includes("scope") ? (
        <Select
          label="Storage that the agent cleans"
          data={SCOPES}
          value={choice.scope}
          allowDeselect={false}
          onChange={(scope) => onChange({ scope: scope as Choice["scope"] })}
        />
      ) : null}
      {has.includes("drain") ? (
        <NumberInput
          label="Minutes that logged-in users have to leave"
          min={0}
          max={MOST_DRAIN_MINUTES}
          allowDecimal={false}
          error={faultOf(mode, choice)}
          value={choice.drainMinutes}
          onChange={(drainMinutes) => onChange({ drainMinutes })}
        />
      ) : null}
      {has.includes("drain") ? (
        <Switch
          label="End the sessions that are still open afterwards"
          checked={choice.force}
          onChange={(event) => onChange({ force: event.currentTarget.checked })}
        />
      ) : null}
      {has.includes("record") ? (
        <Switch
          label="Also delete the machine in MAAS"
          checked={choice.removeRecord}
          onChange={(event) => onChange({ removeRecord: event.currentTarget.checked })}
        />
      ) : null}
    </div>
  );
}
