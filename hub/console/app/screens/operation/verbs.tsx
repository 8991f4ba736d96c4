import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { words } from "../../parts/tones.ts";
import { VerbButton } from "../../verbs/verb-button.tsx";
import type { Given } from "../../verbs/verb-dialog.tsx";
import { changedBy, type Operation, type Timeline } from "./operation-questions.ts";
import { inOrder, VERBS, type Verb, whyNot, whyNotForced } from "./operation-verbs.ts";

interface Props {
  readonly timeline: Timeline;
  readonly record: Operation;
}

const PATH = {
  retry: "retry",
  resume: "resume",
  rerun: "rerun",
  restart_clean: "restart-clean",
  adopt: "adopt",
  cancel: "cancel",
  mark_manual_intervention: "mark-manual-intervention",
} as const satisfies Record<Verb, string>;

function give(verb: Verb, { operation_id: id, kind }: Timeline, { reason, headers }: Given): Promise<unknown> {
  const request = { params: { path: { id }, header: headers }, body: { reason } };
  return kind === "onboarding"
    ? read(api.POST(`/api/v1/admin/onboardings/{id}/${PATH[verb]}`, request))
    : read(api.POST(`/api/v1/admin/decommissions/{id}/${PATH[verb]}`, request));
}

function OneVerb({ verb, timeline, record }: Props & { readonly verb: Verb }): ReactNode {
  const { title, effect, final } = VERBS[verb];
  const recommended = record.next_verb === verb;
  return (
    <VerbButton
      verb={title}
      what={`the ${words(timeline.kind)} of ${timeline.hostname}`}
      effect={
        <>
          {effect} {recommended ? `The hub recommends it: ${record.next_action ?? ""}` : null}
        </>
      }
      final={final ?? false}
      first={recommended}
      right="operate_nodes"
      disabledBecause={whyNot(verb, record)}
      changes={changedBy(timeline.operation_id)}
      run={(given) => give(verb, timeline, given)}
    />
  );
}

/** All verbs of the operation, first and in colour the one that the hub recommends after a failure. A verb that would have no effect now says why. */
export const Verbs = ({ timeline, record }: Props): ReactNode => (
  <>
    {inOrder(record.next_verb).map((verb) => (
      <OneVerb key={verb} verb={verb} timeline={timeline} record={record} />
    ))}
    {timeline.kind === "onboarding" ? null : <Force timeline={timeline} record={record} />}
  </>
);

const Force = ({ timeline, record }: Props): ReactNode => (
  <VerbButton
    verb="Force"
    what={`the ${words(timeline.kind)} of ${timeline.hostname}`}
    effect="The hub goes on without an agent that will never answer. What only the agent could have proved, such as an erase, is then not proved, and a health override may keep new work off the node."
    final
    right="operate_nodes"
    disabledBecause={whyNotForced(timeline.kind, record.status)}
    changes={changedBy(timeline.operation_id)}
    run={({ reason, headers }) =>
      read(
        api.POST("/api/v1/admin/decommissions/{id}/force", {
          params: { path: { id: timeline.operation_id }, header: headers },
          body: { reason },
        }),
      )
    }
  />
);
