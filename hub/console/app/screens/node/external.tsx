import { TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, read } from "../../api/client.ts";
import { useHub } from "../../api/session.ts";
import { Evidence } from "../../parts/evidence.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Section } from "../../parts/page-head.tsx";
import { RelativeTime } from "../../parts/relative-time.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { VerbButton } from "../../verbs/verb-button.tsx";
import { type ExternalVerb, whyNotReported } from "./external-verbs.ts";
import classes from "./node.module.css";
import { changedBy, type ExternalAttempt, externalAttemptOf, type Node } from "./node-questions.ts";

/**
 * Shows how an external system provisions the node: its newest attempt, and the verbs that act on the attempt. The screen of a node whose onboarding
 * mode is not `external` does not show external provisioning.
 */
export function ExternalProvisioning({ node }: { readonly node: Node }): ReactNode {
  const { data } = useQuery({ ...externalAttemptOf(node.id), enabled: node.onboarding_mode === "external" });
  if (data === undefined || data === null) return null;
  return (
    <Section
      title="External provisioning"
      aside={
        <div className={classes.verbs}>
          <Complete node={node} one={data} />
          <Fail node={node} one={data} />
          <Abandon node={node} one={data} />
        </div>
      }
    >
      <Facts
        facts={[
          ["Status", <StatusBadge key="status" status={data.status} />],
          ["Why", data.reason],
          ["What to do", data.next_action ?? undefined],
          ["External system", `${data.provisioner}, reported by ${data.holder}`],
          ["Attempt", `${data.number}, generation ${data.generation}`],
          [
            "Step",
            data.step === null ? undefined : `${data.step}${data.percent === null ? "" : `, ${data.percent} %`}`,
          ],
          ["Begun", <RelativeTime key="begun" at={data.begun_at} />],
          ["Last report", <RelativeTime key="reported" at={data.reported_at} />],
          [
            "Next report due",
            data.lease_expires_at === null ? undefined : <RelativeTime key="lease" at={data.lease_expires_at} />,
          ],
          ["Deadline", data.deadline_at === null ? undefined : <RelativeTime key="deadline" at={data.deadline_at} />],
          ["Failure", data.failure_code === null ? undefined : <code key="code">{data.failure_code}</code>],
          ["Facts", data.facts === null ? undefined : <Evidence key="facts" value={data.facts} />],
          ["Reports that came too late", data.late_reports === 0 ? undefined : String(data.late_reports)],
        ]}
      />
      {data.waiting_for.length === 0 ? null : (
        <ul className={classes.reasons} aria-label="What the node waits for">
          {data.waiting_for.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      )}
    </Section>
  );
}

interface OfAttempt {
  readonly node: Node;
  readonly one: ExternalAttempt;
}

function useReport({ node, one }: OfAttempt, verb: ExternalVerb) {
  const { you } = useHub();
  return {
    what: `the provisioning of ${node.hostname}`,
    right: "provision_hosts",
    disabledBecause: whyNotReported(verb, one, you.name),
    changes: changedBy(node.id),
  } as const;
}

const Complete = (of: OfAttempt): ReactNode => (
  <VerbButton
    {...useReport(of, "complete")}
    verb="Complete"
    effect="The external system has provisioned the host. The node comes into service when its conditions allow."
    asksReason={false}
    run={({ headers }) =>
      read(
        api.POST("/api/v1/admin/external-attempts/{id}/complete", {
          params: { path: { id: of.one.id }, header: headers },
          body: { facts: {} },
        }),
      )
    }
  />
);

const Fail = (of: OfAttempt): ReactNode => (
  <VerbButton
    {...useReport(of, "fail")}
    verb="Fail"
    effect="The external system could not provision the host. The reason is the message of the failure."
    run={({ reason, headers, values: { code } }) =>
      read(
        api.POST("/api/v1/admin/external-attempts/{id}/fail", {
          params: { path: { id: of.one.id }, header: headers },
          body: { code, message: reason },
        }),
      )
    }
    initial={{ code: "" }}
    fields={({ values, set }) => (
      <TextInput
        label="Code of the failure"
        description="Small letters, digits and underscores, for example no_disk."
        mb="xs"
        required
        withAsterisk={false}
        pattern="[a-z][a-z0-9_]*"
        maxLength={64}
        value={values.code}
        onChange={(event) => set({ code: event.currentTarget.value })}
      />
    )}
  />
);

const Abandon = (of: OfAttempt): ReactNode => (
  <VerbButton
    {...useReport(of, "abandon")}
    verb="Abandon"
    effect="The attempt is given up, so that another one may begin. Later reports about it change nothing."
    final
    run={({ reason, headers }) =>
      read(
        api.POST("/api/v1/admin/external-attempts/{id}/abandon", {
          params: { path: { id: of.one.id }, header: headers },
          body: { reason },
        }),
      )
    }
  />
);
