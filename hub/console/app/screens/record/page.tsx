import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Facts } from "../../parts/facts.tsx";
import { AllocationLink, NodeLink, OperationLink, RecordLink } from "../../parts/links.tsx";
import { Note } from "../../parts/note.tsx";
import { PageHead, Section } from "../../parts/page-head.tsx";
import { absolute } from "../../parts/relative-time.tsx";
import { Answered } from "../../parts/states.tsx";
import { StatusBadge } from "../../parts/status-badge.tsx";
import { toneOf, words } from "../../parts/tones.ts";
import { Gpus, Media, Residue, Steps } from "./evidence.tsx";
import { type Content, type RecordAnswer, recordOf } from "./record-question.ts";
import { recordRoute } from "./route.ts";
import { Validations } from "./validations.tsx";

/** Shows one sanitization record: the verdict with its reasons, what was done to the host, and how to check the record without the hub. */
export function Page(): ReactNode {
  const { id } = recordRoute.useParams();
  const query = useQuery(recordOf(id));
  return (
    <Answered query={query} what="the record">
      {(answer) => <Body answer={answer} />}
    </Answered>
  );
}

const VERDICT_WORDS = {
  clean: "Everything that the turnover had to do is proved",
  not_clean: "The host is not clean",
  incomplete: "The record does not prove that the host is clean",
} as const;

function Body({ answer }: { readonly answer: RecordAnswer }): ReactNode {
  const { record_id: id, record } = answer;
  const path = `/api/v1/admin/sanitization-records/${id}`;
  return (
    <>
      <PageHead
        title={`Record ${answer.sequence} of ${answer.hostname}`}
        beside={<StatusBadge status={answer.verdict} />}
        below={<code>{id}</code>}
        actions={
          <>
            <Button variant="default" component="a" href={`${path}/print`} target="_blank" rel="noreferrer">
              Printable page
            </Button>
            <Button variant="default" component="a" href={`${path}/export`} download={`sanitization-record-${id}.json`}>
              Export
            </Button>
          </>
        }
      />
      <Note tone={toneOf(record.verdict)} title={VERDICT_WORDS[record.verdict]}>
        {record.reasons.length === 0 ? null : (
          <ul>
            {record.reasons.map(({ code, about }) => (
              <li key={`${code} ${about}`}>
                {words(code)}: {about}
              </li>
            ))}
          </ul>
        )}
      </Note>
      <About answer={answer} />
      <Sentences title="What the record claims" sentences={record.claims} />
      <Sentences title="What the record does not cover" sentences={record.not_covered} />
      <Residue record={record} />
      <Media record={record} />
      <Gpus record={record} />
      <Steps record={record} />
      <Validations answer={answer} />
      <Proof answer={answer} />
    </>
  );
}

function Sentences({ title, sentences }: { readonly title: string; readonly sentences: readonly string[] }): ReactNode {
  if (sentences.length === 0) return null;
  return (
    <Section title={title}>
      <ul>
        {sentences.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
    </Section>
  );
}

const spanOf = ({ from, to }: NonNullable<Content["allocation"]>): string =>
  `${from === null ? "?" : absolute(from)} to ${to === null ? "?" : absolute(to)}`;

function About({ answer }: { readonly answer: RecordAnswer }): ReactNode {
  const { record } = answer;
  const { node, allocation, operation } = record;
  const machine = [node.vendor, node.product, node.system_id].filter(Boolean).join(", ");
  return (
    <Section title="The turnover">
      <Facts
        facts={[
          [
            "Node",
            <NodeLink key="node" id={answer.node_id}>
              {node.hostname}
            </NodeLink>,
          ],
          ["Machine", machine],
          ["System UUID", node.system_uuid],
          ["Tenant", allocation === null ? "no tenant" : `${allocation.tenant}, account ${allocation.login_user}`],
          ["Tenant had root", allocation === null ? undefined : allocation.granted_root ? "yes" : "no"],
          ["Other ways to root", allocation?.root_by?.map(words).join(", ")],
          ["Allocation", allocation === null ? undefined : <AllocationLink key="allocation" id={allocation.id} />],
          ["Used", allocation === null ? undefined : spanOf(allocation)],
          [
            "Turnover",
            <OperationLink key="operation" kind="decommission" id={answer.decommission_id}>
              {words(operation.mode)}
            </OperationLink>,
          ],
          ["Asked by", `${operation.requested_by}: ${operation.reason}`],
          ["Where the host went", record.destination],
          ["Trust", words(record.trust)],
          ["Began", absolute(record.started_at)],
          ["Ended", absolute(record.finished_at)],
          [
            "Follows the record",
            record.follows === undefined ? undefined : <RecordLink key="follows" id={record.follows} />,
          ],
          [
            "Ended without a turnover",
            record.without_turnover === undefined ? undefined : words(record.without_turnover.because),
          ],
          ["Disks erased by MAAS", eraseOf(record)],
        ]}
      />
    </Section>
  );
}

function eraseOf({ release }: Content): string | undefined {
  if (release === undefined) return undefined;
  const { erase, evidence, waived_by: by } = release;
  return [erase, evidence === "none" ? "no evidence" : "MAAS reported it", by === null ? null : `waived by ${by}`]
    .filter((part) => part !== null)
    .join(", ");
}

/** Explains how somebody who does not trust the hub can check the sanitization record. */
function Proof({ answer }: { readonly answer: RecordAnswer }): ReactNode {
  const { record } = answer;
  return (
    <Section title="Signatures and chain">
      <Facts
        facts={[
          ["Signed by", answer.signed_by_agent ? "the host's agent and the hub" : "the hub only"],
          ["Why not by the agent", record.unsigned_reason ?? undefined],
          ["Number in the node's chain", String(answer.sequence)],
          ["SHA-256 of this record", <code key="sha">{answer.record_sha256}</code>],
          [
            "SHA-256 of the record before",
            record.previous_sha256 === null ? (
              "the chain begins here"
            ) : (
              <code key="before">{record.previous_sha256}</code>
            ),
          ],
          ["Hub's order key", <code key="key">{answer.order_key}</code>],
          [
            "Agent",
            record.agent === null
              ? undefined
              : `${record.agent.version}, certificate ${record.agent.certificate_serial}`,
          ],
          ["Hub", record.hub.version],
          [
            "Check it without the hub",
            <code key="verify">
              muster verify-record sanitization-record-{answer.record_id}.json --order-key=@hub.pub
            </code>,
          ],
        ]}
      />
    </Section>
  );
}
