import { Button, Modal, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { queryClient } from "../../api/query-client.ts";
import { useSiteName } from "../../api/sites.ts";
import { notify } from "../../frame/notice-list.ts";
import { isAbout, topicsIn } from "../../live/topics.ts";
import shared from "../../parts/parts.module.css";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted } from "../../parts/tones.ts";
import { ReasonField } from "../../verbs/reason-field.tsx";
import { applyToNodes, BULK_VERBS, type BulkAction, type BulkVerb, lackOf, type SiteResult } from "./bulk-requests.ts";
import type { NodesSearch } from "./node-questions.ts";
import classes from "./nodes.module.css";
import { choicesOf, type Division } from "./selection.ts";

const MOST_AT_ONCE = 1_000;

interface Props {
  readonly verb: BulkVerb;
  readonly division: Division;
  readonly count: number;
  readonly search: NodesSearch;
  readonly onClose: (done: boolean) => void;
}

/** Asks for the reason, shows what the verb would do to each selected node, and runs the verb only after that. */
export function BulkDialog(props: Props): ReactNode {
  const { verb, count, onClose } = props;
  return (
    <Modal
      opened
      size="lg"
      onClose={() => onClose(false)}
      title={`${BULK_VERBS[verb].title} ${counted(count, "node")}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <BulkForm {...props} />
    </Modal>
  );
}

const sumOf = (results: readonly SiteResult[], field: "applied" | "refused"): number =>
  results.reduce((total, { result }) => total + result[field], 0);

function useBulk({ verb, division, search, onClose }: Props) {
  const [plan, setPlan] = useState<readonly SiteResult[] | null>(null);
  const preview = useMutation({
    mutationFn: (action: BulkAction) => applyToNodes(action, choicesOf(null, division.choices), search, true),
    onSuccess: setPlan,
  });
  const doing = useMutation({
    mutationFn: (action: BulkAction) => applyToNodes(action, choicesOf(plan, division.choices), search, false),
    onSuccess: (results) => {
      const refused = sumOf(results, "refused");
      notify({
        tone: refused > 0 ? "attention" : "good",
        text: `${BULK_VERBS[verb].title}: done for ${counted(sumOf(results, "applied"), "node")}, refused for ${refused}.`,
      });
      onClose(true);
    },
    // After the hub refused the request, the preview is outdated, so the person has to look at a new preview.
    onError: () => setPlan(null),
    onSettled: () =>
      queryClient.invalidateQueries({ predicate: ({ meta }) => isAbout(topicsIn(meta), new Set(["nodes"])) }),
  });
  return { plan, preview, doing, forget: () => setPlan(null) };
}

/** Returns the form's first values. A list that is filtered by the source of an override gives the form that source. */
const emptyAction = ({ verb, search }: Props): BulkAction => ({
  verb,
  reason: "",
  room: "",
  rack: "",
  source: search.health_override ?? "",
});

function BulkForm(props: Props): ReactNode {
  const { verb, division, onClose } = props;
  const [action, setAction] = useState(emptyAction(props));
  const { plan, preview, doing, forget } = useBulk(props);
  const change = (changed: Partial<BulkAction>): void => {
    setAction({ ...action, ...changed });
    forget();
  };
  const tooMany = choicesOf(plan, division.choices).some(
    ({ ids, expected }) => (ids?.length ?? expected ?? 0) > MOST_AT_ONCE,
  );
  const refusal = tooMany
    ? "One request takes at most 1,000 nodes of a site. Narrow the filter first."
    : division.refusal;
  const lacks = lackOf(action) !== null;
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (lacks || refusal !== null) return;
    if (plan === null) preview.mutate(action);
    else doing.mutate(action);
  };
  const applies = plan === null ? 0 : sumOf(plan, "applied");
  const error = doing.error ?? preview.error;
  return (
    <form onSubmit={submit}>
      <p className={shared.dialogText}>{BULK_VERBS[verb].effect}</p>
      {verb === "set_location" ? <LocationFields action={action} onChange={change} /> : null}
      {verb === "remove_health_override" ? (
        <TextInput
          label="Source of the override"
          description="For example restore, as the screen of a node names it."
          mb="xs"
          required
          withAsterisk={false}
          maxLength={63}
          value={action.source}
          onChange={(event) => change({ source: event.currentTarget.value })}
        />
      ) : null}
      <ReasonField value={action.reason} onChange={(reason) => change({ reason })} />
      {refusal === null ? null : (
        <p role="alert" className={shared.refusal}>
          {refusal}
        </p>
      )}
      {plan === null ? null : <Preview plan={plan} />}
      {error === null ? null : (
        <div role="alert" className={shared.refusal}>
          <p>{error.message}</p>
          <p>Nothing was changed by the refused request. Look at the preview again before you go on.</p>
        </div>
      )}
      <div className={shared.dialogFoot}>
        <Button variant="default" onClick={() => onClose(false)}>
          No
        </Button>
        {plan === null ? (
          <Button type="submit" loading={preview.isPending} disabled={refusal !== null}>
            Preview
          </Button>
        ) : (
          <Button type="submit" loading={doing.isPending} disabled={applies === 0 || refusal !== null}>
            {BULK_VERBS[verb].title} {counted(applies, "node")}
          </Button>
        )}
      </div>
    </form>
  );
}

function LocationFields({
  action,
  onChange,
}: {
  readonly action: BulkAction;
  readonly onChange: (changed: Partial<BulkAction>) => void;
}): ReactNode {
  return (
    <div className={classes.fields}>
      <TextInput
        label="Room"
        description="Empty: stays as it is"
        value={action.room}
        onChange={(event) => onChange({ room: event.currentTarget.value })}
      />
      <TextInput
        label="Rack"
        description="Empty: stays as it is"
        value={action.rack}
        onChange={(event) => onChange({ rack: event.currentTarget.value })}
      />
    </div>
  );
}

/** Shows for how many nodes the verb would take effect, and why not for the others. */
function Preview({ plan }: { readonly plan: readonly SiteResult[] }): ReactNode {
  const siteName = useSiteName();
  return (
    <div role="status" className={classes.preview}>
      {plan.map(({ choice, result }) => (
        <div key={choice.siteId}>
          <h3 className={classes.previewSite}>{siteName(choice.siteId)}</h3>
          <p>
            <StatusBadge status="ok">{counted(result.applied, "node")}</StatusBadge> would change
            {result.refused > 0 ? `, ${result.refused} would be refused:` : "."}
          </p>
          {result.refused_by.map(({ error_code: code, reason, count }) => (
            <p key={`${code} ${reason}`} className={classes.refused}>
              <StatusBadge status="refused">{counted(count, "node")}</StatusBadge> {reason}
            </p>
          ))}
          <details>
            <summary>The nodes</summary>
            <ul className={classes.names}>
              {result.nodes.map(({ node_id: id, hostname }) => (
                <li key={id}>{hostname}</li>
              ))}
              {result.refusals.map(({ node_id: id, hostname, message }) => (
                <li key={id}>
                  {hostname ?? id}: {message}
                </li>
              ))}
            </ul>
          </details>
        </div>
      ))}
    </div>
  );
}
