import { Button, Modal, Tooltip } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useRef, useState } from "react";
import { onceOnly } from "../../api/client.ts";
import { HubError } from "../../api/hub-error.ts";
import { queryClient, question } from "../../api/query-client.ts";
import { useMay } from "../../api/session.ts";
import { useSiteName } from "../../api/sites.ts";
import { FOR_A_FORM } from "../../api/versioned.ts";
import { notify } from "../../frame/notice-list.ts";
import { isAbout, topicsIn } from "../../live/topics.ts";
import { OperationLink } from "../../parts/links.tsx";
import parts from "../../parts/parts.module.css";
import { Answered } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { counted, words } from "../../parts/tones.ts";
import { type DialogState, useDialogs } from "../../verbs/dialogs.tsx";
import { giveOperation, type OperationVerb } from "../../verbs/operation-verb.ts";
import { ReasonField } from "../../verbs/reason-field.tsx";
import { type Group, type Operation, operationsOf, type Plan, planOf } from "./group-operations.ts";

const EFFECTS: Readonly<Record<NonNullable<Group["next_verb"]>, string>> = {
  retry: "The hub runs the failed stage of each operation again, with new attempts and a new deadline.",
  resume: "Each operation goes on from its last safe stage.",
  rerun: "The hub runs all stages of each operation from the first one, and adopts what is already there.",
  restart_clean: "The hub undoes what each operation has done, forgets it, and begins again with the first stage.",
  adopt: "The hub accepts what it observes now as the result of each failed stage, and goes on.",
};

const titleOf = ({ count, error_code: code }: Group): string => `Resolve ${counted(count, "operation")} with ${code}`;

export function ResolveButton({ group }: { readonly group: Group }): ReactNode {
  const may = useMay();
  const show = useDialogs();
  const because = may("operate_nodes")
    ? group.next_verb === null
      ? "The hub recommends no verb for this failure. Look at each operation."
      : null
    : "Your role lacks the right operate_nodes.";
  const button = (
    <Button
      variant="default"
      aria-disabled={because !== null}
      data-disabled={because !== null || undefined}
      aria-label={titleOf(group)}
      onClick={() => {
        if (because === null) show((state) => <ResolveDialog group={group} {...state} />);
      }}
    >
      Resolve
    </Button>
  );
  return because === null ? button : <Tooltip label={because}>{button}</Tooltip>;
}

/** Shows a preview, and then gives all failed operations of a group the verb that the hub recommends for them. */
function ResolveDialog({ group, opened, onClose }: { readonly group: Group } & DialogState): ReactNode {
  const verb = group.next_verb;
  return (
    <Modal
      opened={opened}
      size="lg"
      onClose={onClose}
      title={titleOf(group)}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {opened && verb !== null ? <Preview group={group} verb={verb} onClose={onClose} /> : null}
    </Modal>
  );
}

interface PreviewProps {
  readonly group: Group;
  readonly verb: OperationVerb & keyof typeof EFFECTS;
  readonly onClose: () => void;
}

const previewOf = (group: Group) =>
  question(
    [],
    ["overview", "group", group.failure_class, group.error_code, group.next_action, group.next_verb],
    (signal) => operationsOf(group, signal),
  );

function Preview({ group, verb, onClose }: PreviewProps): ReactNode {
  const query = useQuery({ ...previewOf(group), ...FOR_A_FORM });
  return (
    <>
      <p className={parts.dialogText}>
        {group.next_action} {EFFECTS[verb]}
      </p>
      <Answered query={query} what="the operations of the group">
        {(operations) => <Confirm plan={planOf(verb, operations)} total={group.count} onClose={onClose} />}
      </Answered>
    </>
  );
}

interface Refused {
  readonly operation: Operation;
  readonly message: string;
}

/**
 * Gives the recommended verb, such as retry, to one failed operation after another, and returns the operations for which the hub refused the verb. If
 * the hub is unreachable, the loop over the operations stops, because no further request would reach the hub.
 */
function useResolve(plan: Plan, onClose: () => void) {
  const [done, setDone] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState<readonly Refused[]>([]);
  const given = useRef(new Set<string>());
  const headers = useRef(new Map<string, ReturnType<typeof onceOnly>>());
  const headersOf = (id: string): ReturnType<typeof onceOnly> => {
    const known = headers.current.get(id) ?? onceOnly();
    headers.current.set(id, known);
    return known;
  };
  const giving = useMutation({
    mutationFn: async (reason: string) => {
      const refusals: Refused[] = [];
      for (const operation of plan.taken.filter(({ operation_id: id }) => !given.current.has(id))) {
        const { operation_id: id } = operation;
        try {
          await giveOperation(plan.verb, operation, { reason, headers: headersOf(id) });
          given.current.add(id);
          setDone(new Set(given.current));
        } catch (error) {
          if (!(error instanceof HubError) || error.isAway) throw error;
          headers.current.delete(id);
          refusals.push({ operation, message: error.message });
        }
      }
      return refusals;
    },
    onSuccess: (refusals) => {
      setRefused(refusals);
      if (refusals.length > 0) return;
      notify({ tone: "good", text: `${words(plan.verb)}: given to ${counted(given.current.size, "operation")}.` });
      onClose();
    },
    onSettled: () =>
      queryClient.invalidateQueries({
        predicate: ({ meta }) => isAbout(topicsIn(meta), new Set(["operations", "nodes"])),
      }),
  });
  return { giving, done, refused };
}

interface ConfirmProps {
  readonly plan: Plan;
  /** The number of all failed operations of the group, of which the dialog may resolve only a part in one step. */
  readonly total: number;
  readonly onClose: () => void;
}

function Confirm({ plan, total, onClose }: ConfirmProps): ReactNode {
  const [reason, setReason] = useState("");
  const { giving, done, refused } = useResolve(plan, onClose);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (reason.trim() !== "") giving.mutate(reason.trim());
  };
  const left = plan.taken.filter(({ operation_id: id }) => !done.has(id)).length;
  return (
    <form onSubmit={submit}>
      <Planned plan={plan} total={total} />
      <ReasonField value={reason} onChange={setReason} />
      {giving.error === null && refused.length === 0 ? null : (
        <div role="alert" className={parts.refusal}>
          <p>
            The verb is given to {counted(done.size, "operation")}, and not to {left}.
          </p>
          {giving.error === null ? null : <p>{giving.error.message}</p>}
          <ul>
            {refused.map(({ operation: { operation_id: id, hostname }, message }) => (
              <li key={id}>
                <OperationLink id={id}>{hostname}</OperationLink>: {message}
              </li>
            ))}
          </ul>
        </div>
      )}
      <div className={parts.dialogFoot}>
        <Button variant="default" onClick={onClose}>
          {done.size > 0 ? "Close" : "No"}
        </Button>
        <Button type="submit" loading={giving.isPending} disabled={left === 0}>
          {sentence(words(plan.verb))} {counted(left, "operation")}
        </Button>
      </div>
    </form>
  );
}

const sentence = (text: string): string => text.replace(/^./, (letter) => letter.toUpperCase());

/** Shows how many failed operations of each site would get the recommended verb, such as retry, and lists these operations. */
function Planned({ plan: { taken, waiting }, total }: Omit<ConfirmProps, "onClose">): ReactNode {
  const siteName = useSiteName();
  const sites = [...Map.groupBy(taken, ({ site_id: site }) => site)];
  const more = total - taken.length - waiting.length;
  return (
    <div role="status">
      {sites.map(([site, operations]) => (
        <details key={site}>
          <summary>
            {siteName(site)}: <StatusBadge status="ok">{counted(operations.length, "operation")}</StatusBadge>
          </summary>
          <ul>
            {operations.map(({ operation_id: id, kind, hostname }) => (
              <li key={id}>
                {hostname}, {words(kind)}
              </li>
            ))}
          </ul>
        </details>
      ))}
      {waiting.length === 0 ? null : (
        <p>{counted(waiting.length, "operation")} left out, because an earlier verb has not taken effect yet.</p>
      )}
      {more > 0 ? <p>{counted(more, "further operation")} of the group for a later step.</p> : null}
    </div>
  );
}
